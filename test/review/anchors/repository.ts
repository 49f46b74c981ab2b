import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export type Tree = Readonly<Record<string, string>>;

/** A repository whose trees are made of texts: git itself tells what is between them. */
export class Repository {
  readonly directory: string;

  constructor(directory: string) {
    this.directory = directory;
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

  write(tree: Tree): void {
    for (const name of readdirSync(this.directory)) {
      if (name !== '.git') rmSync(join(this.directory, name), { recursive: true });
    }
    for (const [path, text] of Object.entries(tree)) {
      const file = join(this.directory, path);
      if (!existsSync(dirname(file))) mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    }
  }

  tree(tree: Tree): string {
    this.write(tree);
    this.git(['add', '-A', '-f']);
    return this.git(['write-tree']).trim();
  }

  /** As the backend asks for it. */
  diff(before: Tree, after: Tree): string {
    const [from, to] = [this.tree(before), this.tree(after)];
    return this.git(['diff-tree', '-r', '-p', '-M', '-U3', '--src-prefix=a/', '--dst-prefix=b/', from, to]);
  }
}
