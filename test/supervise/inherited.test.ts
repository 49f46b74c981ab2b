import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
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
