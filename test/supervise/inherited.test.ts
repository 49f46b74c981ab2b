import { execFileSync } from 'node:child_process';
import { globSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { root } from '../../scripts/toolchain.mjs';

t.test(
  'regression: H47 descriptors that the parent left open reach no program',
  { skip: process.platform !== 'linux' },
  (t) => {
    const directory = t.testdir({ file: '' });
    mkdirSync(join(directory, 'open'));
    const leaked = ['5<"$D/open"', '9>>"$D/file"', '30<"$D/open"', '41< <(true)', '77<>/dev/null', '200>"$D/other"'];
    const list =
      "require('child_process').execFileSync('ls', ['/proc/self/fd'], { encoding: 'utf8' }).trim().split('\\n').map(Number)";
    const seen = (isClosing: boolean): number[] => {
      const source = join(root, 'src', 'supervise', 'inherited.ts');
      const program = `${isClosing ? `require('${source}').closeInherited();` : ''} console.log(JSON.stringify(${list}))`;
      const script = `exec ${leaked.join(' ')}; exec "$NODE" --disable-warning=ExperimentalWarning -e "$PROGRAM"`;
      const env = {
        PATH: process.env['PATH'],
        HOME: directory,
        D: directory,
        NODE: process.execPath,
        PROGRAM: program,
      };
      return JSON.parse(execFileSync('bash', ['-c', script], { env, encoding: 'utf8' })) as number[];
    };
    const numbers = [5, 9, 30, 41, 77, 200];
    const [open, closed] = [seen(false), seen(true)];
    t.ok(
      numbers.some((fd) => open.includes(fd)),
      'control: without it programs have them',
    );
    t.strictSame(
      numbers.filter((fd) => closed.includes(fd)),
      [],
    );
    t.end();
  },
);

t.test(
  'regression: H47 descriptors that appear after the start are closed before a program runs',
  { skip: process.platform !== 'linux' },
  (t) => {
    const directory = t.testdir({ file: '' });
    const sources = ['inherited.ts', 'run-program.ts'].map((name) =>
      JSON.stringify(join(root, 'src', 'supervise', name)),
    );
    // The descriptor of a channel is left open at the start, and is not one of the channel later.
    const program = `
    const { closeInherited } = require(${sources[0]});
    const { runProgram } = require(${sources[1]});
    const seen = async () => {
      let text = '';
      const stdout = (chunk) => { text += chunk; };
      await runProgram({ program: 'ls', args: ['/proc/self/fd'], env: process.env, stdout });
      return text.trim().split('\\n').map(Number);
    };
    (async () => {
      const before = await seen();
      closeInherited({ NODE_CHANNEL_FD: '30' });
      console.log(JSON.stringify([before, await seen()]));
    })();`;
    const script = 'exec 30>>"$D/file"; exec "$NODE" --disable-warning=ExperimentalWarning -e "$PROGRAM"';
    const env = { PATH: process.env['PATH'], HOME: directory, D: directory, NODE: process.execPath, PROGRAM: program };
    const [before, after] = JSON.parse(execFileSync('bash', ['-c', script], { env, encoding: 'utf8' }));
    t.ok(before.includes(30), 'control: a program has it as long as nothing is closed');
    t.notOk(after.includes(30));
    t.end();
  },
);

/** Files whose programs may have the descriptors: Linux does not run them, or they are not part of a process that runs for long. */
const excepted = [
  ['src/supervise/ps.ts', 'macOS only, where nothing is closed'],
  ['src/supervise/signals.ts', 'Windows only'],
  ['src/client/start-hub.ts', 'the Hub closes them when it starts'],
  ['src/cli/ask.ts', 'asks whether input waits, in a command of the user'],
  ['src/cli/login/agent.ts', 'the log-in of an agent, in a command of the user'],
  ['src/cli/page.ts', 'opens the browser of the user'],
  ['src/cli/service/manager.ts', 'asks systemd or launchd, in a command of the user'],
  ['src/deploy/engine/build-image.ts', 'a command of the user'],
  ['src/deploy/engine/image-sbom.ts', 'a command of the user'],
  ['src/review/demo/repository.ts', 'makes the sample of a demonstration'],
] as const;

t.test('regression: H47 each file that starts programs closes inherited descriptors before it does', (t) => {
  const files = globSync('src/**/*.ts', { cwd: root }).filter((file) =>
    /^import \{[^}]*\b(?:spawn|execFile|exec|fork|spawnSync|execFileSync|execSync)\b[^}]*\} from 'node:child_process'/m.test(
      readFileSync(join(root, file), 'utf8'),
    ),
  );
  const isClosing = (file: string): boolean => {
    const source = readFileSync(join(root, file), 'utf8');
    const starts = source.match(/(?<![\w.])(?:spawn|execFile|fork)\((?!\))/g)?.length ?? 0;
    const closes = source.match(/\bcloseBeforeStart\(\);\n.*?\b(?:spawn|execFile|fork)\(/g)?.length ?? 0;
    return starts > 0 && closes === starts;
  };
  t.ok(files.filter(isClosing).includes('src/supervise/spawn.ts'), 'positive control');
  t.strictSame(files.filter((file) => !isClosing(file)).toSorted(), excepted.map(([file]) => file).toSorted());
  t.end();
});
