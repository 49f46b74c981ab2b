import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Objects } from '../git/objects.ts';

export type Tree = Readonly<Record<string, string>>;

/** A repository whose trees are made of texts: git itself computes the difference. */
export class Repository {
  readonly directory: string;
  readonly #objects: Objects;

  constructor(directory: string) {
    this.directory = directory;
    this.#objects = new Objects(join(directory, '.git'));
    this.git(['init', '-q']);
  }

  git(args: readonly string[], input = ''): string {
    return execFileSync('git', ['-c', 'core.autocrlf=false', '-c', 'core.safecrlf=false', ...args], {
      cwd: this.directory,
      input,
      maxBuffer: 64 * 1024 * 1024,
      stdio: ['pipe', 'pipe', 'ignore'],
    }).toString();
  }

  /** Into the working tree. */
  write(name: string, text: string): void {
    writeFileSync(join(this.directory, name), text);
  }

  tree(tree: Tree): string {
    return this.#objects.treeOf(
      new Map(
        Object.entries(tree).map(([path, text]) => [path, ['100644', 'blob', this.#objects.blob(text)] as const]),
      ),
    );
  }

  /** As the backend asks for it. */
  diff(before: Tree, after: Tree): string {
    const [from, to] = [this.tree(before), this.tree(after)];
    return this.git(['diff-tree', '-r', '-p', '-M', '-U3', '--src-prefix=a/', '--dst-prefix=b/', from, to]);
  }
}
