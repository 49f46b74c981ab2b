/**
 * Which files of the checkout depend on which. A file depends on every file that one of its string literals names: imports of
 * all forms name `.ts` files with their extension, and programs that tests start are named by their path.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { root } from './toolchain.mjs';

/** A quoted path with an extension, relative to the file (`./x.ts`) or to the root of the checkout (`src/x.ts`). */
const quotedPath =
  /['"`]((?:\.{1,2}\/|(?:src|machines|test|scripts|bench|bin)\/)[\w@./-]+\.(?:tsx?|[cm]?js|css|json|html|svg))['"`]/g;

/** Files whose text can name other files; the others are leaves. */
const isRead = (file: string): boolean => /\.(?:tsx?|[cm]?js|html)$/.test(file);

export class ImportGraph {
  readonly #base: string;
  readonly #direct = new Map<string, readonly string[]>();

  /** @param base absolute path of the checkout; all other paths are relative to it */
  constructor(base: string = root) {
    this.#base = base;
  }

  /** Makes the graph read `file` again when it is next needed: the file was written, created or removed. */
  forget(file: string): void {
    this.#direct.delete(file);
  }

  /**
   * `file` and everything it depends on, through any number of files.
   *
   * @param follows whether the dependencies of a file count, too; default: those of every file
   */
  closureOf(file: string, follows: (file: string) => boolean = () => true): ReadonlySet<string> {
    const found = new Set([file]);
    for (const each of found) {
      if (each === file || follows(each)) for (const named of this.#named(each)) found.add(named);
    }
    return found;
  }

  /** Members of `files` that one of `changed` belongs to, in the given order. */
  affected(files: readonly string[], changed: ReadonlySet<string>): readonly string[] {
    return files.filter((file) => [...this.closureOf(file)].some((each) => changed.has(each)));
  }

  #named(file: string): readonly string[] {
    const known = this.#direct.get(file);
    if (known) return known;
    const path = join(this.#base, file);
    const text = isRead(file) && existsSync(path) ? readFileSync(path, 'utf8') : '';
    const named = [...text.matchAll(quotedPath)]
      .map(([, name = '']) => (name.startsWith('.') ? join(dirname(file), name) : normalize(name)))
      .filter((name) => !name.startsWith('..') && this.#isFile(name));
    const direct = [...new Set(named)];
    this.#direct.set(file, direct);
    return direct;
  }

  /** Deleted files stay part of the graph while the files that name them are not changed. */
  #isFile(name: string): boolean {
    return statSync(join(this.#base, name), { throwIfNoEntry: false })?.isFile() ?? false;
  }
}
