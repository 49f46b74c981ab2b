import t from 'tap';
import { catalogue } from '../../machines/index.ts';
import { commands } from '../../src/cli/commands.ts';
import { exitCodes } from '../../src/cli/exit-codes.ts';
import { parse } from '../../src/cli/parse.ts';

const run = (...argv: string[]) => {
  const parsed = parse(argv);
  if (parsed.kind !== 'run') throw new Error(`${parsed.kind} instead of a command`);
  return { name: parsed.command.name, argument: parsed.argument, options: parsed.options };
};

t.test('commands of one and two words are parsed with argument and options', async (t) => {
  t.match(run('up'), {
    name: 'up',
    argument: undefined,
    options: { init: false, follow: undefined, start: true, json: false },
  });
  t.match(run('up', 'dir', '--init', '--no-follow'), { argument: 'dir', options: { init: true, follow: false } });
  t.match(run('up', '--follow', 'dir'), { argument: 'dir', options: { follow: true } });
  t.match(run('up', '--init', 'dir', '--json'), { argument: 'dir', options: { init: true, json: true } });
  t.match(run('hub', 'stop', '--detach'), { name: 'hub stop', options: { detach: true } });
  t.match(run('hub'), { name: 'hub' });
  t.match(run('events', '--since', 'a-1', '--workspace=.'), { options: { since: 'a-1', workspace: '.' } });
  t.match(run('logs', '-f'), { options: { follow: true, stdout: false } });
  t.match(run('chat', 'hub stop'), { name: 'chat', argument: 'hub stop' });
  t.match(run('chat', 'hub'), { name: 'chat', argument: 'hub' });
});

t.test('paths and values are parsed as text', async (t) => {
  t.equal(run('up', '007').argument, '007');
  t.equal(run('up', '--json', '1e3').argument, '1e3');
  t.equal(run('events', '--since', '0123').options['since'], '0123');
  t.equal(run('up', 'true').argument, 'true');
  t.equal(run('chat', '--', '--help').argument, '--help');
  t.equal(run('chat', '--workspace', '1', '--', '-5 + 3?').argument, '-5 + 3?');
});

t.test('a lone - is the value of every option that takes a file', async (t) => {
  const all = commands.flatMap((command) =>
    command.options.flatMap((option) => (option.value === 'file' ? [{ command, option }] : [])),
  );
  t.ok(all.length >= 6, 'the table has options of this type');
  for (const { command, option } of all)
    for (const words of [[`--${option.name}`, '-'], [`--${option.name}=-`], [`--${option.name}`, '-', '--json']]) {
      if (words.includes('--json') && !command.options.some(({ name }) => name === 'json')) continue;
      const parsed = parse([...command.name.split(' '), ...words]);
      const found = parsed.kind === 'run' ? [parsed.options[option.name], ...(parsed.lists[option.name] ?? [])] : [];
      t.ok(found.includes('-'), `${command.name} ${words.join(' ')}`);
    }
  t.throws(() => parse(['login', '--api-key-file', '--json']), { message: /--api-key-file needs a value/ });
});

t.test('an unknown command, option or argument is a usage error', async (t) => {
  const wrong: [string[], RegExp][] = [
    [['lisst'], /no command lisst. Did you mean list\?/],
    [['constructor'], /no command constructor\.$/],
    [['__all__'], /no command __all__\.$/],
    [['--json', 'list'], /Options go after the command/],
    [['list', '--nonsense'], /list has no option --nonsense/],
    [['list', '-x'], /no option -x/],
    [['list', '--no-color'], /no option --no-color/],
    [['list', 'extra'], /cannot use: extra/],
    [['up', 'one', 'two'], /cannot use: two/],
    [['events', '--since'], /--since needs a value/],
    [['events', '--since', '--json'], /--since needs a value/],
    [['events', '--since', 'a', '--since', 'b'], /more than once/],
    [['machines', 'nonsense'], /must be one of hub, agent-server, sidecar-slot, api-proxy/],
    [['machines', 'hub', '--format', 'png'], /must be one of mermaid, json, svg/],
  ];
  for (const [argv, message] of wrong)
    t.throws(() => parse(argv), { name: 'CliError', exit: 'usage', message }, argv.join(' '));
});

t.test('help and version are parsed for the program and for commands', async (t) => {
  for (const argv of [[], ['--help'], ['-h'], ['help']]) t.match(parse(argv), { kind: 'help', command: undefined });
  t.match(parse(['up', '--help']), { kind: 'help', command: { name: 'up' } });
  t.match(parse(['hub', 'stop', '-h']), { kind: 'help', command: { name: 'hub stop' } });
  t.match(parse(['help', 'hub', 'stop']), { kind: 'help', command: { name: 'hub stop' } });
  for (const flag of ['--version', '-v', '-V']) t.match(parse([flag]), { kind: 'version' });
});

t.test('the command table is consistent', async (t) => {
  t.strictSame(commands.find(({ name }) => name === 'machines')?.argument?.choices, Object.keys(catalogue));
  for (const { name, examples } of commands) {
    t.ok(examples.length > 0, `${name} has an example`);
    for (const example of examples) {
      const words = (example.split(/ [<>|]/)[0] ?? '').match(/"[^"]*"|\S+/g) ?? [];
      t.equal(run(...words.map((word) => word.replaceAll('"', ''))).name, name, example);
    }
  }
  const codes = Object.values(exitCodes).map(({ code }) => code);
  t.equal(new Set(codes).size, codes.length, 'no exit code means two things');
});

t.test('every command can be loaded', async (t) => {
  for (const { name, load } of commands) t.type((await load()).run, 'function', name);
});
