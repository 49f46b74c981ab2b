/** `oratorio rules`. */
import { execFile } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { savedRulesFile } from '../../src/agent/index.ts';
import { workspaceStateDirectory } from '../../src/config/index.ts';
import { program, programEnvironment } from '../programs.ts';
import { runAt } from './in-process.ts';

const run = promisify(execFile);
const arguments_ = ['--disable-warning=ExperimentalWarning', '--conditions=development', program('src/cli/main.ts')];

function place(t: Test) {
  const Rules = [{ Tool: 'Exec', Prefix: 'npm test', Decision: 'allow' }];
  const base = t.testdir({
    home: { 'config.json': JSON.stringify({ Permissions: { Rules } }) },
    shop: { '.oratorio': { 'config.json': '{}' }, 'a.txt': '1' },
  });
  const env = { ...programEnvironment, HOME: base, ORATORIO_HOME: join(base, 'home') };
  const cwd = join(base, 'shop');
  const rules = (...args: string[]) => runAt({ cwd, env }, 'rules', ...args);
  const start = (...args: string[]) => run(process.execPath, [...arguments_, 'rules', ...args], { cwd, env });
  return { rules, start, file: savedRulesFile(workspaceStateDirectory(join(base, 'home'), join(base, 'shop'))) };
}

t.test('a rule that is added is listed, decides, and is removed by its number', async (t) => {
  const { rules, start } = place(t);
  await start('add', 'npm run build');
  await rules('add', '--decision', 'deny', 'git push');
  await rules('add', '--tool', 'WriteFile', '--pattern', 'docs/*');
  await rules('add', '--network', 'npm install');
  const { stdout } = await start();
  t.match(stdout, /4 +allow Exec npm install …, with the network/);
  t.match(stdout, /1 +allow Exec npm run build …[\s\S]*2 +deny Exec git push …[\s\S]*3 +allow WriteFile docs\/\*/);
  t.match(stdout, /allow Exec npm test … +Permissions\.Rules/);
  t.match((await rules('test', 'npm run build && cat a.txt')).stdout, /^allow: the rule “allow Exec npm run build …”/);
  t.match((await rules('test', 'npm test; git push')).stdout, /^deny: the rule “deny Exec git push …”/);
  await rules('remove', '2');
  const { saved } = JSON.parse((await rules('list', '--json')).stdout);
  t.match(saved, [{ Prefix: ['npm', 'run', 'build'] }, { Tool: 'WriteFile', Pattern: 'docs/*' }, { Network: true }]);
  t.equal(saved.length, 3);
});

t.test('the decision about a command is explained, with the commands in it', async (t) => {
  const { rules } = place(t);
  const decide = async (command: string) => JSON.parse((await rules('test', command, '--json')).stdout);
  t.same(await decide('cat a.txt | wc -l'), {
    decision: 'allow',
    reason: 'it only reads in the workspace',
    kind: 'plain',
    commands: [
      ['cat', 'a.txt'],
      ['wc', '-l'],
    ],
  });
  t.match(await decide('npm test > out'), {
    decision: 'ask',
    kind: 'opaque',
    reason: 'it is not a list of plain commands',
  });
  t.match(await decide('rm a.txt'), { decision: 'ask', reason: 'no rule is about it' });
});

t.test('wrong rules and numbers are refused, and nothing is saved', async (t) => {
  const { rules, start, file } = place(t);
  t.match(await rules('add'), { code: 2, stderr: /because it allows commands/ });
  t.match(await rules('add', '--decision', 'maybe', 'x'), { code: 2, stderr: /allow, ask, deny/ });
  t.match(await rules('add', '--network', '--decision', 'deny', 'x'), {
    code: 2,
    stderr: /Network only where it allows/,
  });
  t.match(await rules('remove', '1'), { code: 2, stderr: /no saved rule 1; there are 0/ });
  await t.rejects(start('test'), { code: 2, stderr: /needs a command/ });
  t.notOk(existsSync(file));
});

t.test('a damaged file is named, and not overwritten', async (t) => {
  const { rules, file } = place(t);
  await rules('add', 'npm run build');
  writeFileSync(file, '{');
  t.match(await rules('add', 'x y'), { code: 1, stderr: /rules\.json is not JSON[\s\S]*Repair or remove/ });
});
