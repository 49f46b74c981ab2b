/**
 * Takes the place of tap in the bundles of tests, where several files may share a process: each has the test of its file as its root.
 */
import { join } from 'node:path';
import root, { type Test } from 'tap';

let current: Test = root;

/** The test of the whole process: ends after the last file. */
export const processTest: Test = root;

/** Behaves as the root of tap, within the file that is running. */
const t = new Proxy(root, {
  get(_, key) {
    const value: unknown = Reflect.get(current, key);
    return typeof value === 'function' ? value.bind(current) : value;
  },
  set: (_, key, value) => Reflect.set(current, key, value),
});
export default t;

/** Loads a file and runs its tests. */
export interface SharedFile {
  /** Named from the root of the checkout. */
  readonly name: string;
  readonly load: () => Promise<unknown>;
}

/** Runs the files one after the other, each as a test of its name, and each with directories as in a process of its own. */
export async function runFiles(files: readonly SharedFile[]): Promise<void> {
  for (const { name, load } of files) {
    await root.test(name, async (test) => {
      const directory = name.replace(/\.ts$/, '.js').replaceAll('/', '-');
      test.testdirName = join(process.env['TAP_CWD'] ?? process.cwd(), '.tap', 'fixtures', directory);
      current = test;
      await load();
    });
  }
}
