import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import t from 'tap';
import { solutionOf } from '../../bench/lab/model.ts';
import { tasks } from '../../bench/lab/repositories/index.ts';
import { faultOf, makeRepository } from '../../bench/lab/run.ts';
import { slips } from '../../bench/lab/slips.ts';
import type { Task } from '../../bench/lab/task.ts';

const home = realpathSync(mkdtempSync(join(tmpdir(), 'oratorio-lab-test-')));
t.teardown(() => rmSync(home, { recursive: true, force: true }));

/** Runs the test files of a task in the process of `node --test`, which otherwise starts one for each of them. */
const inOneProcess = (task: Task): Task => ({
  ...task,
  test: task.test.replace(/^node --test(?= )/, '$& --experimental-test-isolation=none'),
});

/**
 * Makes a directory whose `python3` starts the interpreter itself: the `python3` of a version manager starts sixteen shells
 * to find it.
 */
function pythonDirectory(): string {
  const directory = join(home, 'bin');
  const python = execFileSync('python3', ['-c', 'import sys; print(sys.executable)'], { encoding: 'utf8' }).trim();
  mkdirSync(directory);
  writeFileSync(join(directory, 'python3'), `#!/bin/sh\nexec '${python}' "$@"\n`, { mode: 0o755 });
  return directory;
}

const base = {
  PATH: [pythonDirectory(), process.env['PATH'] ?? ''].join(delimiter),
  HOME: home,
  // A compiler that is killed leaves its files here, and they go with the run.
  TMPDIR: tmpdir(),
  // A repository of a few files needs neither sample hooks nor a git that looks for loose objects after the commit.
  GIT_TEMPLATE_DIR: '',
  GIT_CONFIG_COUNT: '1',
  GIT_CONFIG_KEY_0: 'maintenance.auto',
  GIT_CONFIG_VALUE_0: 'false',
};

/** The repository of a task in a directory of its own, with its environment. */
function repository(task: Task): { readonly directory: string; readonly env: Record<string, string> } {
  const directory = join(home, task.name);
  const env = { ...base, ...task.env?.(directory) };
  makeRepository(directory, task, env);
  return { directory, env };
}

t.test('the lab has at least thirty repositories, some of each language, with names of their own', async (t) => {
  t.ok(tasks.length >= 30);
  t.equal(new Set(tasks.map(({ name }) => name)).size, tasks.length);
  for (const language of ['typescript', 'python', 'c', 'shell'])
    t.ok(tasks.filter((task) => task.language === language).length >= 8, language);
});

for (const task of tasks) {
  t.test(`${task.name}: the test fails before the change and passes after it`, async (t) => {
    const { directory, env } = repository(task);
    t.ok(faultOf(directory, inOneProcess(task), env, false), 'fails before');
    for (const [path, content] of Object.entries(solutionOf(task))) {
      mkdirSync(dirname(join(directory, path)), { recursive: true });
      writeFileSync(join(directory, path), content);
    }
    // A script of the repository fills the cache; the model only waits for it.
    if (task.name === 'py-waiting') writeFileSync(join(directory, '.cache'), '7\n');
    t.equal(faultOf(directory, inOneProcess(task), env, true), undefined, 'passes after');
  });

  for (const { path, edits, slip = 'none' } of task.changes.filter((change) => change.slip !== undefined)) {
    t.test(`${task.name}: the slip "${slip}" in ${path} is another text than the file has`, async (t) => {
      t.ok(edits.some((edit) => !task.files[path]?.includes(slips[slip](edit).old)));
    });
  }
}

t.test('a changed test file, a different text and a wrong result are not a solution', async (t) => {
  const [first] = tasks;
  if (!first) return t.fail('no task');
  const task = inOneProcess(first);
  const { directory, env } = repository({ ...task, name: 'wrong' });
  const solution = Object.entries(solutionOf(task));
  for (const [path, content] of solution) writeFileSync(join(directory, path), content);
  t.equal(faultOf(directory, task, env, true), undefined);
  writeFileSync(join(directory, 'pages.ts'), `${solution[0]?.[1]}\n`);
  t.match(faultOf(directory, task, env, true), /pages\.ts is not as it was meant/);
  t.equal(faultOf(directory, task, env, false), undefined, 'a real model may write it otherwise');
  writeFileSync(join(directory, 'pages.test.ts'), '');
  t.match(faultOf(directory, task, env, false), /pages\.test\.ts was changed/);
});
