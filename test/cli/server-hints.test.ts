/** Commands that messages of the product name as the next step. */
import { cpSync, globSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { root } from '../../scripts/toolchain.mjs';
import { commands } from '../../src/cli/commands.ts';
import { parse } from '../../src/cli/parse.ts';
import { machine } from './server-setup.ts';

/** Texts that are not commands, or leave the command of `server` to a variable. */
const others = /^(?:in each workspace|diff\.VALUE|server checksum|server$|server (?:VALUE)+)/;
const firstWords = new Set(commands.map(({ name }) => name.split(' ')[0] ?? ''));

/** Values that stand for those of a user. */
const filled = (text: string): string => text.replaceAll(/\$\{[^{}]*\}|<[^<>]*>/g, 'VALUE');

/** Command lines that a source names, without the words of the sentence around them. */
function commandLinesOf(source: string): string[][] {
  const text = filled(source.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, ''));
  return [...text.matchAll(/(\\?`|: |[Rr]un:? )?\boratorio ([a-z](?:(?!\boratorio )[^\n'"`\\])*)/g)].flatMap(
    ([, lead, rest = '']) => {
      const words = rest.split(/\s+/).map((word) => word.replace(/[.,:;)]+$/, ''));
      if (others.test(words.join(' '))) return [];
      if (!lead && !firstWords.has(words[0] ?? '')) return [];
      return [words];
    },
  );
}

/** The command with the options that follow it; undefined when no command has this name. */
function commandOf(words: readonly string[]): string[] | undefined {
  const found = [3, 2, 1]
    .map((count) => commands.find(({ name }) => name === words.slice(0, count).join(' ')))
    .find((command) => command !== undefined);
  if (!found) return undefined;
  const line = found.name.split(' ');
  let index = line.length;
  if (found.argument && /^[A-Z]+$|^github:|^VALUE/.test(words[index] ?? '')) line.push(words[index++] ?? '');
  while (words[index]?.startsWith('-')) {
    const option = words[index++] ?? '';
    line.push(option);
    const spec = found.options.find(({ name, value }) => `--${name}` === option && value !== undefined);
    if (!spec) continue;
    const value = words[index++] ?? '';
    line.push(value === 'VALUE' ? (spec.choices?.[0] ?? value) : value);
  }
  return line;
}

t.test('every command that a message names exists and takes the named options', async (t) => {
  const files = globSync('src/**/*.{ts,tsx}', { cwd: root }).filter((file) => !file.includes('generated'));
  let count = 0;
  for (const file of files) {
    for (const words of commandLinesOf(readFileSync(join(root, file), 'utf8'))) {
      const line = commandOf(words);
      if (line === undefined) {
        t.fail(`${file}: no command "oratorio ${words.slice(0, 4).join(' ')}"`);
        continue;
      }
      count += 1;
      try {
        parse(line);
      } catch (error) {
        t.fail(`${file}: oratorio ${line.join(' ')}: ${String(error)}`);
      }
    }
  }
  t.ok(count > 150, `${count} command lines`);
});

t.test('a wrong command, option or value of a message is noticed', async (t) => {
  const lineOf = (source: string) => commandLinesOf(source).map(commandOf);
  t.same(lineOf("'Run: oratorio sever doctor'"), [undefined]);
  t.throws(() => parse(lineOf("'Then: oratorio server upgrade --gone NAME'")[0] ?? []), /--gone/);
  t.throws(() => parse(lineOf("'Then: oratorio server logs --service'")[0] ?? []), /service/);
  t.same(lineOf('`Again: oratorio server webhook enable --public-host ${host}, then wait`'), [
    ['server', 'webhook', 'enable', '--public-host', 'VALUE'],
  ]);
  t.same(lineOf("'oratorio was updated'"), []);
});

t.test('the next step that the doctor names for a damaged stack repairs it', async (t) => {
  const m = await machine(t);
  t.match(await m.init(), { code: 0 });
  const run = (...argv: string[]) => m.cli('server', ...argv, '--dir', m.directory);
  t.match(await run('webhook', 'enable', '--yes', '--public-host', 'hooks.oratorio.dev'), { code: 0 });
  const hintOf = async (check: string): Promise<string | undefined> => {
    const { stdout } = await run('doctor', '--offline', '--json', '--only', check);
    const [{ status, hint }] = JSON.parse(stdout).checks;
    return status === 'fail' ? String(hint) : undefined;
  };
  const backup = join(m.home, 'backup');
  cpSync(m.directory, backup, { recursive: true });
  const env = m.stackFile('.env');

  for (const file of ['docker-compose.yml', 'oratorio.config.json']) {
    rmSync(join(m.directory, file));
    t.match(await hintOf('files.present'), /restore the file from a backup/, file);
    t.match(await m.init(), { code: 7 }, 'a new init would refuse');
    cpSync(join(backup, file), join(m.directory, file));
    t.equal(await hintOf('files.present'), undefined, file);
  }

  const project = /^COMPOSE_PROJECT_NAME=.*\n/m;
  writeFileSync(join(m.directory, '.env'), env.replace(project, ''));
  t.match(await hintOf('env.required'), /^Set it in \.env .*Then: oratorio server restart\.$/);
  writeFileSync(join(m.directory, '.env'), env);
  t.match(await run('restart'), { code: 0 });
  t.equal(await hintOf('env.required'), undefined);

  rmSync(join(m.directory, 'docker-compose.webhook.yml'));
  const gateway = (await hintOf('files.pair')) ?? '';
  const steps = commandLinesOf(`'${gateway}'`).map((words) => commandOf(words) ?? []);
  t.equal(steps.length, 2, gateway);
  for (const step of steps) {
    const words = step.slice(1).map((word) => (word === 'HOST' ? 'hooks.oratorio.dev' : word));
    t.match(await run(...words, '--yes'), { code: 0 }, step.join(' '));
  }
  t.equal(await hintOf('files.pair'), undefined);

  const checkout = join(m.directory, 'workspace/octo__app');
  renameSync(checkout, join(m.home, 'moved'));
  const again = (await hintOf('repo.octo/app.checkout')) ?? '';
  const [step = []] = commandLinesOf(`'${again}'`).map((words) => commandOf(words) ?? []);
  t.match(await run(...step.slice(1), '--clone-url', m.repository('octo/app')), { code: 0 }, again);
  t.equal(await hintOf('repo.octo/app.checkout'), undefined);
});
