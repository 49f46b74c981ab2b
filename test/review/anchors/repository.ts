import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { Objects } from '../git/objects.ts';

const endOfDiff = 'end\n';

export type Tree = Readonly<Record<string, string>>;
export type BinaryTree = Readonly<Record<string, string | Buffer>>;

/** A repository whose trees are made of texts: git itself computes the difference. */
export class Repository {
  readonly directory: string;
  readonly #objects: Objects;

  constructor(directory: string) {
    this.directory = directory;
    this.#objects = new Objects(join(directory, '.git'));
    mkdirSync(join(directory, '.git/objects'), { recursive: true });
    mkdirSync(join(directory, '.git/refs'));
    writeFileSync(join(directory, '.git/HEAD'), 'ref: refs/heads/main\n');
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

  tree(tree: BinaryTree): string {
    return this.#objects.treeOf(
      new Map(
        Object.entries(tree).map(([path, text]) => [path, ['100644', 'blob', this.#objects.blob(text)] as const]),
      ),
    );
  }

  /**
   * Starts one process for the differences of a test. It ends with the test.
   * @returns the difference of two trees as the backend asks for it; one at a time
   */
  differ(t: Test): (before: BinaryTree, after: BinaryTree) => Promise<string> {
    const args = ['diff-tree', '--stdin', '-r', '-p', '-M', '-U3', '--src-prefix=a/', '--dst-prefix=b/'];
    const child = spawn('git', ['-c', 'core.autocrlf=false', '-c', 'core.safecrlf=false', ...args], {
      cwd: this.directory,
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    const ended = once(child, 'close');
    t.teardown(async () => {
      child.stdin.end();
      await ended;
    });
    const output = child.stdout.setEncoding('utf8')[Symbol.asyncIterator]();
    return async (before, after) => {
      const pair = `${this.tree(before)} ${this.tree(after)}\n`;
      child.stdin.write(pair + endOfDiff);
      // Each difference begins with its trees. No line of one is that of the end, which git repeats because it names no tree.
      let text = '\n';
      while (!text.endsWith(`\n${endOfDiff}`)) {
        const { done, value } = await output.next();
        if (done) throw new Error('git diff-tree has ended');
        text += value;
      }
      return text.slice(1 + pair.length, -endOfDiff.length);
    };
  }
}
