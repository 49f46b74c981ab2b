/**
 * Git's objects, written as git writes them (gitformat-loose: zlib, named by their SHA-1). For fixtures: a process for each
 * object would take longer than what is tested, and some of what is wanted no git would write.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
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

  /** @param gitDir its repository; need not be there yet */
  constructor(gitDir: string) {
    this.#directory = join(gitDir, 'objects');
  }

  #write(type: 'blob' | 'tree' | 'commit', content: Buffer): string {
    const whole = Buffer.concat([Buffer.from(`${type} ${content.length}\0`), content]);
    const sha = createHash('sha1').update(whole).digest('hex');
    const file = join(this.#directory, sha.slice(0, 2), sha.slice(2));
    if (existsSync(file)) return sha;
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, deflateSync(whole, { level: 1 }), { mode: 0o444 });
    return sha;
  }

  blob(content: string | Buffer): string {
    return this.#write('blob', Buffer.from(content));
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
    return this.#write('tree', Buffer.concat(sorted.flatMap(({ entry }) => entry)));
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
    return this.#write('commit', Buffer.from(lines.join('\n')));
  }
}
