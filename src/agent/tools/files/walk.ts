import { readdir } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { IgnoreRules } from './gitignore.ts';
import { type DirectoryHandle, openDirectory, openFile, statEntry } from './handles.ts';
import type { SearchScope } from './search.ts';

/** A regular file. `directory` is open until the next one is asked for. */
export interface WalkedFile {
  /** Relative to where the walk began, with `/`. */
  readonly path: string;
  readonly directory: DirectoryHandle;
  readonly name: string;
}

/** Rules of a `.gitignore`, and how a path of the walk is called from where they are. */
interface Ignore {
  readonly rules: IgnoreRules;
  readonly toOwnPath: (path: string) => string;
}

/** All files below a directory that no `.gitignore` excludes, by name; symlinks are neither followed nor listed. */
export async function* walk(scope: SearchScope): AsyncGenerator<WalkedFile> {
  const root = scope.directory.path;
  const skippedNames = new Set(scope.skippedNames.map((name) => name.toLowerCase()));
  const skippedPaths = new Set(scope.skippedPaths);

  async function* below(
    directory: DirectoryHandle,
    prefix: string,
    inherited: readonly Ignore[],
  ): AsyncGenerator<WalkedFile> {
    const own = await rulesIn(directory.path);
    const ignores = own
      ? [...inherited, { rules: own, toOwnPath: (path: string) => path.slice(prefix.length) }]
      : inherited;
    const entries = await readdir(directory.at(), { withFileTypes: true });
    entries.sort((a, b) => (a.name < b.name ? -1 : 1));
    for (const entry of entries) {
      const path = prefix + entry.name;
      const isDirectory = entry.isDirectory();
      const isSkipped = skippedNames.has(entry.name.toLowerCase()) || skippedPaths.has(path);
      if (isSkipped || isIgnored(ignores, path, isDirectory)) continue;
      if (entry.isFile()) yield { path, directory, name: entry.name };
      if (!isDirectory) continue;
      // A directory that cannot be opened, or was exchanged just now, is left out.
      const inner = await openDirectory(join(root, path)).catch(() => undefined);
      if (!inner) continue;
      try {
        yield* below(inner, `${path}/`, ignores);
      } finally {
        await inner.close();
      }
    }
  }

  yield* below(scope.directory, '', await rulesAbove(root));
}

/** Whether a path is ignored: the deepest `.gitignore` with a matching rule decides. */
function isIgnored(ignores: readonly Ignore[], path: string, isDirectory: boolean): boolean {
  for (const { rules, toOwnPath } of ignores.toReversed()) {
    const word = rules.isIgnored(toOwnPath(path), isDirectory);
    if (word !== undefined) return word;
  }
  return false;
}

/** Rules of the directories above, up to the root of the repository. */
async function rulesAbove(root: string): Promise<Ignore[]> {
  const found: Ignore[] = [];
  for (let directory = root; ; ) {
    const isRepository = (await statEntry(join(directory, '.git')).catch(() => undefined)) !== undefined;
    const parent = dirname(directory);
    if (isRepository || parent === directory) return found.toReversed();
    directory = parent;
    const rules = await rulesIn(directory);
    const prefix = `${relative(directory, root).split(sep).join('/')}/`;
    if (rules) found.push({ rules, toOwnPath: (path) => prefix + path });
  }
}

async function rulesIn(directory: string): Promise<IgnoreRules | undefined> {
  // `.gitignore` is usually missing; an unreadable one excludes nothing.
  const file = await openFile(join(directory, '.gitignore')).catch(() => undefined);
  if (!file) return undefined;
  try {
    return new IgnoreRules(await file.handle.readFile('utf8'));
  } finally {
    await file.close();
  }
}
