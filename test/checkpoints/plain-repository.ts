/** A repository that is read and written file by file, as gitrepository-layout(5) says: without a process, and apart from the code under test. */
import { createHash } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { deflateSync, inflateSync } from 'node:zlib';

/** One entry of an index or of a commit's tree. */
export interface TreeEntry {
  readonly path: string;
  readonly mode: number;
  readonly object: string;
  /** 0, or the side of a conflict. */
  readonly stage?: number;
}

const sum = (bytes: Buffer) => createHash('sha1').update(bytes).digest();
const [directoryMode, submoduleMode] = [0o40000, 0o160000];
const stamp = 't <t@localhost> 1700000000 +0000';
const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));

export class PlainRepository {
  /** Directory with the files. */
  readonly top: string;
  /** Has HEAD and the index. */
  readonly directory: string;
  /** Has refs and objects. */
  readonly common: string;

  constructor(top: string) {
    this.top = top;
    const named = join(top, '.git');
    const [, target] = statSync(named).isFile() ? (/^gitdir: (.+)$/m.exec(readFileSync(named, 'utf8')) ?? []) : [];
    this.directory = target === undefined ? named : resolve(top, target);
    const shared = join(this.directory, 'commondir');
    this.common = existsSync(shared) ? resolve(this.directory, readFileSync(shared, 'utf8').trim()) : this.directory;
  }

  /** @returns undefined: missing */
  static at(top: string): PlainRepository | undefined {
    return existsSync(join(top, '.git')) ? new PlainRepository(top) : undefined;
  }

  read(name: string): string | undefined {
    const path = join(this.directory, name);
    return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  }

  write(name: string, text: string | undefined, parent = this.directory): void {
    const path = join(parent, name);
    if (text === undefined) rmSync(path, { force: true });
    else {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    }
  }

  // Refs

  /** All refs, packed ones included: names with commits, or with `ref: …`. */
  refs(): Map<string, string> {
    const refs = new Map<string, string>();
    for (const line of this.#packed()) {
      const [object = '', name = ''] = [line.slice(0, 40), line.slice(41)];
      refs.set(name, object);
    }
    const visit = (name: string) => {
      for (const entry of readdirSync(join(this.common, name), { withFileTypes: true })) {
        const below = `${name}/${entry.name}`;
        if (entry.isDirectory()) visit(below);
        else refs.set(below, readFileSync(join(this.common, below), 'utf8').trim());
      }
    };
    visit('refs');
    return refs;
  }

  get head(): string {
    return readFileSync(join(this.directory, 'HEAD'), 'utf8').trim();
  }

  /** Branch on which the repository stands. */
  get branch(): string | undefined {
    return this.head.startsWith('ref: ') ? this.head.slice(5) : undefined;
  }

  /** Commit of HEAD; undefined: the branch has none. */
  get commit(): string | undefined {
    return this.branch === undefined ? this.head : this.refs().get(this.branch);
  }

  /** Sets a ref, or removes it. @returns false: git would refuse, as for a ref below another one */
  setRef(name: string, value: string | undefined): boolean {
    if (value === undefined) {
      const packed = this.#packed();
      const others = packed.filter((line) => line.slice(41) !== name);
      if (others.length < packed.length) this.#pack(others);
      rmSync(join(this.common, name), { force: true });
      for (let at = dirname(name); at.split('/').length > 2; at = dirname(at)) this.#removeEmpty(at);
      return true;
    }
    const taken = [...this.refs().keys()].some((each) => each.startsWith(`${name}/`) || name.startsWith(`${each}/`));
    if (taken) return false;
    this.write(name, `${value}\n`, this.common);
    return true;
  }

  packRefs(): void {
    const plain = [...this.refs()].filter(([, value]) => !value.startsWith('ref: '));
    for (const [name] of plain) rmSync(join(this.common, name), { force: true });
    this.#pack(plain.sort(([a], [b]) => byBytes(a, b)).map(([name, value]) => `${value} ${name}`));
  }

  /** Moves HEAD's branch, or HEAD itself, to a commit. */
  setCommit(commit: string): void {
    if (this.branch === undefined) this.write('HEAD', `${commit}\n`);
    else this.setRef(this.branch, commit);
  }

  #packed(): string[] {
    const path = join(this.common, 'packed-refs');
    const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : [];
    return lines.filter((line) => /^[0-9a-f]{40} /.test(line));
  }

  #pack(lines: readonly string[]): void {
    this.write('packed-refs', ['# pack-refs with: sorted', ...lines, ''].join('\n'), this.common);
  }

  #removeEmpty(name: string): void {
    const path = join(this.common, name);
    if (existsSync(path) && readdirSync(path).length === 0) rmdirSync(path);
  }

  // Objects

  put(kind: 'blob' | 'tree' | 'commit', content: Buffer): string {
    const bytes = Buffer.concat([Buffer.from(`${kind} ${content.length}\0`), content]);
    const name = sum(bytes).toString('hex');
    const path = join(this.common, 'objects', name.slice(0, 2), name.slice(2));
    if (!existsSync(path)) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, deflateSync(bytes, { level: 1 }), { mode: 0o444 });
    }
    return name;
  }

  /** Content of a loose object. */
  get(name: string): Buffer {
    const bytes = inflateSync(readFileSync(join(this.common, 'objects', name.slice(0, 2), name.slice(2))));
    return bytes.subarray(bytes.indexOf(0) + 1);
  }

  commitTree(tree: string, parents: readonly (string | undefined)[], text: string): string {
    const named = parents.flatMap((parent) => (parent === undefined ? [] : [`parent ${parent}\n`])).join('');
    return this.put('commit', Buffer.from(`tree ${tree}\n${named}author ${stamp}\ncommitter ${stamp}\n\n${text}\n`));
  }

  treeOf(commit: string): string {
    return this.get(commit).toString('latin1', 5, 45);
  }

  parentsOf(commit: string): readonly string[] {
    return [
      ...this.get(commit)
        .toString('latin1')
        .matchAll(/^parent (.{40})$/gm),
    ].map(([, parent = '']) => parent);
  }

  /** Files of a tree, with their paths. */
  entriesOf(tree: string, below = ''): TreeEntry[] {
    const bytes = this.get(tree);
    const entries: TreeEntry[] = [];
    for (let at = 0; at < bytes.length; ) {
      const [blank, end] = [bytes.indexOf(0x20, at), bytes.indexOf(0, at)];
      const mode = Number.parseInt(bytes.toString('latin1', at, blank), 8);
      const path = below + bytes.toString('utf8', blank + 1, end);
      const object = bytes.toString('hex', end + 1, end + 21);
      if (mode === directoryMode) entries.push(...this.entriesOf(object, `${path}/`));
      else entries.push({ path, mode, object });
      at = end + 21;
    }
    return entries;
  }

  putTree(entries: readonly TreeEntry[], below = ''): string {
    const lines: { readonly name: string; readonly mode: number; readonly object: string }[] = [];
    const done = new Set<string>();
    for (const { path, mode, object } of entries) {
      if (!path.startsWith(below)) continue;
      const [name = '', ...rest] = path.slice(below.length).split('/');
      if (done.has(name)) continue;
      done.add(name);
      if (rest.length === 0) lines.push({ name, mode, object });
      else lines.push({ name, mode: directoryMode, object: this.putTree(entries, `${below}${name}/`) });
    }
    const key = ({ name, mode }: { name: string; mode: number }) => (mode === directoryMode ? `${name}/` : name);
    const sorted = lines.sort((a, b) => byBytes(key(a), key(b)));
    return this.put(
      'tree',
      Buffer.concat(
        sorted.flatMap(({ name, mode, object }) => [
          Buffer.from(`${mode.toString(8)} ${name}\0`),
          Buffer.from(object, 'hex'),
        ]),
      ),
    );
  }

  // Index and files

  index(): TreeEntry[] {
    const path = join(this.directory, 'index');
    if (!existsSync(path)) return [];
    const bytes = readFileSync(path);
    if (bytes.readUInt32BE(4) > 3) throw new Error('the index has another version');
    const entries: TreeEntry[] = [];
    for (let at = 12, number = bytes.readUInt32BE(8); number > 0; number -= 1) {
      const flags = bytes.readUInt16BE(at + 60);
      const nameAt = at + ((flags & 0x4000) === 0 ? 62 : 64);
      const end = bytes.indexOf(0, nameAt);
      const [mode, object] = [bytes.readUInt32BE(at + 24), bytes.toString('hex', at + 40, at + 60)];
      entries.push({ path: bytes.toString('utf8', nameAt, end), mode, object, stage: (flags >> 12) & 3 });
      at += (end - at + 8) & ~7;
    }
    return entries;
  }

  setIndex(entries: readonly TreeEntry[]): void {
    const sorted = [...entries].sort((a, b) => byBytes(a.path, b.path) || (a.stage ?? 0) - (b.stage ?? 0));
    const header = Buffer.alloc(12);
    header.write('DIRC');
    header.writeUInt32BE(2, 4);
    header.writeUInt32BE(sorted.length, 8);
    const rows = sorted.map(({ path, mode, object, stage = 0 }) => {
      const name = Buffer.from(path);
      const row = Buffer.alloc((62 + name.length + 8) & ~7);
      row.writeUInt32BE(mode, 24);
      row.write(object, 40, 'hex');
      row.writeUInt16BE((stage << 12) | name.length, 60);
      name.copy(row, 62);
      return row;
    });
    const bytes = Buffer.concat([header, ...rows]);
    writeFileSync(join(this.directory, 'index'), Buffer.concat([bytes, sum(bytes)]));
  }

  /** Current entry of a file; undefined: missing. */
  entryAt(path: string): TreeEntry | undefined {
    const stats = lstatSync(join(this.top, path), { throwIfNoEntry: false });
    if (!stats || stats.isDirectory()) return undefined;
    const isLink = stats.isSymbolicLink();
    const content = isLink ? Buffer.from(readlinkSync(join(this.top, path))) : readFileSync(join(this.top, path));
    const mode = isLink ? 0o120000 : (stats.mode & 0o100) === 0 ? 0o100644 : 0o100755;
    return { path, mode, object: this.put('blob', content) };
  }

  /** Entries of the index with the current files. */
  refreshed(): TreeEntry[] {
    return this.index().flatMap((entry) => {
      if (entry.mode === submoduleMode) return [entry];
      const present = this.entryAt(entry.path);
      return present ? [present] : [];
    });
  }

  /** Writes files of a tree, and removes those that the index has beside them. */
  checkOut(entries: readonly TreeEntry[]): void {
    const wanted = new Set(entries.map(({ path }) => path));
    for (const { path } of this.index()) if (!wanted.has(path)) rmSync(join(this.top, path), { force: true });
    for (const entry of entries) {
      if (entry.mode === submoduleMode || this.entryAt(entry.path)?.object === entry.object) continue;
      const path = join(this.top, entry.path);
      rmSync(path, { force: true, recursive: true });
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, this.get(entry.object), { mode: entry.mode & 0o777 });
    }
    this.setIndex(entries);
  }
}

/** Names in a git directory that an undo does not promise to restore. */
const unpromised = new Set([
  'objects',
  'hooks',
  'branches',
  'description',
  'COMMIT_EDITMSG',
  'ORIG_HEAD',
  'FETCH_HEAD',
]);
/** Read apart: refs and index; modules and worktrees are repositories of their own. */
const readApart = new Set(['refs', 'packed-refs', 'index', 'logs', 'modules', 'worktrees', 'gitdir', 'commondir']);

/** Whole state of a repository as text: HEAD, refs, the list of the stash, the entries of the index, configuration, operations under way. */
export function wholeRepository(repository: PlainRepository): string {
  const { directory, common } = repository;
  const files: string[] = [];
  const visit = (parent: string, below: string) => {
    for (const entry of readdirSync(join(parent, below), { withFileTypes: true })) {
      const name = below === '' ? entry.name : `${below}/${entry.name}`;
      if (unpromised.has(name) || readApart.has(name)) continue;
      if (entry.isDirectory()) visit(parent, name);
      else files.push(`${parent === common ? '' : 'own '}${name}\n${readFileSync(join(parent, name), 'latin1')}`);
    }
  };
  visit(directory, '');
  if (directory !== common) visit(common, '');
  const stash = join(common, 'logs/refs/stash');
  return JSON.stringify([
    [...repository.refs()].sort(([a], [b]) => byBytes(a, b)),
    existsSync(stash) ? readFileSync(stash, 'utf8') : '',
    existsSync(join(directory, 'index')) ? repository.index() : null,
    files.sort(),
  ]);
}
