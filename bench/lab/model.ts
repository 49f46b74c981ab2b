/**
 * The scripted model: acts like a good model, including the usual slips, and knows of the workspace only the results of
 * its tools. When an edit is refused it reads again and sends the exact text; when the test still fails it rewrites the file.
 */
import { type Change, slips } from './slips.ts';
import type { Conversation, Move, Task, Work } from './task.ts';

export const run = (command: string): Move => ({ kind: 'run', command });
export const read = (path: string): Move => ({ kind: 'read', path });

/** The files as they must be in the end. @throws when an edit of the task does not fit its file exactly once */
export function solutionOf({ name, files, changes, makes }: Task): Record<string, string> {
  const solution: Record<string, string> = { ...makes };
  for (const { path, edits } of changes) {
    solution[path] = edits.reduce(
      (text, edit) => {
        if (text.split(edit.old).length !== 2) throw new Error(`${name}: not exactly once in ${path}: ${edit.old}`);
        return text.replace(edit.old, () => edit.new);
      },
      solution[path] ?? files[path] ?? '',
    );
  }
  return solution;
}

const passed = /^\W{0,4}(?:fail 0|OK|all tests passed)\s*$/m;

/** Begins the result of an edit that was made, in each harness of the lab. The rest of it may quote the file. */
const made = /^\W*(?:edited|edit applied|success|the file\b.* has been updated|created|overwrote)/i;

export const isRefused = (result: string | undefined): boolean => !made.test(result ?? '');
export const isPassed = (result: string | undefined): boolean => passed.test(result ?? '');

/** Makes a change with its slip, and after a refusal without. */
export function* change({ path, edits, slip = 'none' }: Change, solution: string): Work {
  const [first] = yield [{ kind: 'edit', path, edits: edits.map(slips[slip]) }];
  if (!isRefused(first)) return '';
  yield [read(path)];
  const [second] = yield [{ kind: 'edit', path, edits }];
  if (isRefused(second)) yield [{ kind: 'write', path, content: solution }];
  return '';
}

/** Makes all changes and tests them. @returns the last answer */
export function* changeAndTest(task: Task): Work {
  const solution = solutionOf(task);
  for (const each of task.changes) yield* change(each, solution[each.path] ?? '');
  const [result] = yield [run(task.test)];
  if (isPassed(result)) return 'The cause is removed, and the tests pass.';
  // An edit was taken for another one than was meant, or was not made.
  const paths = task.changes.map(({ path }) => path);
  yield paths.map(read);
  yield paths.map((path): Move => ({ kind: 'write', path, content: solution[path] ?? '' }));
  const [again] = yield [run(task.test)];
  return isPassed(again) ? 'The cause is removed, and the tests pass.' : 'The tests still fail.';
}

/** The usual way: list, read, reproduce, change, test, answer. */
export function* usualWork(_: Conversation, task: Task): Work {
  yield [run('git ls-files')];
  yield (task.reads ?? task.changes.map(({ path }) => path)).map(read);
  yield [run(task.test)];
  return yield* changeAndTest(task);
}
