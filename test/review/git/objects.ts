/**
 * Git's objects, written as git writes them (gitformat-loose: zlib, named by their SHA-1). For fixtures: a process for each
 * object would take longer than the test itself, and git would refuse to write some of the objects.
 */
import { createHash } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { deflateSync } from 'node:zlib';

/** One line of a tree: mode, type, object, name. */
export type TreeLine = readonly [mode: string, type: string, sha: string, name: string | Buffer];

export interface Signature {
  readonly name: string;
  readonly email: string;
  readonly seconds: number;
}

/** A directory `objects` that is added to. */
export class Objects {
  readonly #directory: string;
  /** Objects that a tree or commit names, those of other repositories left out. */
  readonly #named = new Map<string, readonly string[]>();

  /** @param gitDir its repository; need not be there yet */
  constructor(gitDir: string) {
    this.#directory = join(gitDir, 'objects');
  }

  #write(type: 'blob' | 'tree' | 'commit', content: Buffer): string {
    const whole = Buffer.concat([Buffer.from(`${type} ${content.length}\0`), content]);
    const sha = createHash('sha1').update(whole).digest('hex');
    const file = this.#fileOf(this.#directory, sha);
    if (existsSync(file)) return sha;
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, deflateSync(whole, { level: 1 }), { mode: 0o444 });
    return sha;
  }

  blob(content: string | Buffer): string {
    return this.#write('blob', typeof content === 'string' ? Buffer.from(content) : content);
  }

  /** In git's order; names may be anything, and may be there twice. */
  tree(lines: readonly TreeLine[]): string {
    const sorted = lines
      .map(([mode, type, sha, name]) => {
        const bytes = Buffer.from(name);
        const entry = [Buffer.from(`${mode.replace(/^0/, '')} `), bytes, Buffer.of(0), Buffer.from(sha, 'hex')];
        return { key: type === 'tree' ? Buffer.concat([bytes, Buffer.from('/')]) : bytes, entry };
      })
      .sort((one, other) => Buffer.compare(one.key, other.key));
    const made = this.#write('tree', Buffer.concat(sorted.flatMap(({ entry }) => entry)));
    this.#named.set(
      made,
      lines.flatMap(([, type, sha]) => (type === 'commit' ? [] : [sha])),
    );
    return made;
  }

  /** A tree of entries by their paths. */
  treeOf(entries: ReadonlyMap<string, readonly [mode: string, type: string, sha: string]>): string {
    const here: TreeLine[] = [];
    const below = new Map<string, Map<string, readonly [string, string, string]>>();
    for (const [path, entry] of entries) {
      const slash = path.indexOf('/');
      if (slash < 0) {
        here.push([...entry, path]);
        continue;
      }
      const first = path.slice(0, slash);
      const inner = below.get(first) ?? new Map();
      below.set(first, inner.set(path.slice(slash + 1), entry));
    }
    for (const [name, inner] of below) here.push(['040000', 'tree', this.treeOf(inner), name]);
    return this.tree(here);
  }

  commit(tree: string, parents: readonly string[], message: string, { name, email, seconds }: Signature): string {
    const by = `${name} <${email}> ${seconds} +0000`;
    const lines = [
      `tree ${tree}`,
      ...parents.map((sha) => `parent ${sha}`),
      ...[`author ${by}`, `committer ${by}`, '', `${message}\n`],
    ];
    const made = this.#write('commit', Buffer.from(lines.join('\n')));
    this.#named.set(made, [tree, ...parents]);
    return made;
  }

  /**
   * Links the objects reachable from `tips` into the directory `objects` of another repository.
   *
   * @throws for objects that were not written by this class
   */
  lend(gitDir: string, tips: readonly string[]): void {
    const directory = join(gitDir, 'objects');
    const left = [...tips];
    for (let sha = left.pop(); sha !== undefined; sha = left.pop()) {
      const file = this.#fileOf(directory, sha);
      if (existsSync(file)) continue;
      mkdirSync(dirname(file), { recursive: true });
      linkSync(this.#fileOf(this.#directory, sha), file);
      left.push(...(this.#named.get(sha) ?? []));
    }
  }

  #fileOf(directory: string, sha: string): string {
    return join(directory, sha.slice(0, 2), sha.slice(2));
  }
}
