import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { isWithin } from '../paths.ts';
import { type GitConfigEntry, parseGitConfig, targetsOf } from './git-config.ts';
import { homesOf } from './home-places.ts';
import { gitAbsent, isGitWork } from './sandbox-rule.ts';
import { between, canonical, type Place, statOf } from './wall-plan.ts';

/** A git directory to protect. */
export interface GitDirectory {
  /** Canonical. */
  readonly path: string;
  /** Directory that paths of its configuration start from: the top of its files. */
  readonly top: string;
  /** Part of a worktree: hooks and configuration are in the common directory. */
  readonly isLinked: boolean;
}

/** Rows for one git directory by the rule: the names of ordinary work can be written, every other one is read-only or cannot be made. */
export function placesOfGit({ path: git, isLinked }: GitDirectory, workspacePath: string): readonly Place[] {
  const isWritable = (path: string) => isWithin(workspacePath, path) || isWithin(git, path);
  const rows: Place[] = [{ path: git, access: 'write' }];
  const absentDirectories = isLinked ? gitAbsent.linkedDirectories : gitAbsent.directories;
  const absentFiles = isLinked ? gitAbsent.linkedFiles : gitAbsent.files;
  for (const name of namesOf(git).filter((each) => !isGitWork(each) && !isTemporary(each))) {
    const path = join(git, name);
    const target = statOf(path, lstatSync)?.isSymbolicLink() ? canonical(path) : path;
    if (statOf(target)) {
      if (target === path || isWritable(target)) rows.push({ path: target, access: 'read' });
    } else if (target !== path && isWritable(target)) {
      rows.push({ path: target, access: absentDirectories.includes(name) ? 'absentDirectory' : 'absentFile' });
    }
  }
  // A directory with a row of its own cannot be moved away with the rows below it.
  const work = isLinked ? [] : ['objects', 'objects/info'].map((name) => join(git, name));
  rows.push(...work.filter(isPlainDirectory).map((path) => ({ path, access: 'write' as const })));
  const alternates = join(git, 'objects/info/alternates');
  if (!isLinked && statOf(alternates, lstatSync)?.isFile()) rows.push({ path: alternates, access: 'read' });
  const isMissing = (name: string) => !statOf(join(git, name), lstatSync) && isPlainDirectory(dirname(join(git, name)));
  rows.push(
    ...absentDirectories
      .filter(isMissing)
      .map((name) => ({ path: join(git, name), access: 'absentDirectory' as const })),
    ...absentFiles.filter(isMissing).map((name) => ({ path: join(git, name), access: 'absentFile' as const })),
  );
  return rows;
}

/** Files set aside, and new files that are not in place yet. */
const isTemporary = (name: string): boolean => /\.(?:removed|new)-[0-9a-f]{8}$/.test(name) || name.endsWith('.lock');
const isPlainDirectory = (path: string): boolean => statOf(path, lstatSync)?.isDirectory() === true;

function namesOf(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Rows for files of the workspace that git uses from elsewhere: hooks of `core.hooksPath`, included files, programs of filters and aliases.
 * A directory on the way cannot be moved.
 */
export function placesOfConfig(
  directories: readonly GitDirectory[],
  workspacePath: string,
  environment: Environment,
): readonly Place[] {
  const homes = homesOf(environment);
  const xdg = environment['XDG_CONFIG_HOME'];
  const shared = [
    '/etc/gitconfig',
    ...(xdg !== undefined && isAbsolute(xdg) ? [join(xdg, 'git/config')] : []),
    ...homes.flatMap((home) => ['.gitconfig', '.config/git/config'].map((name) => join(home, name))),
  ].flatMap((file) => readConfig(file, homes));
  const rows = directories.flatMap(({ path, top }) => {
    const own = ['config', 'config.worktree'].flatMap((name) => readConfig(join(path, name), homes));
    return [...shared, ...own].flatMap((config) => rowsOf(config, top, homes, workspacePath));
  });
  return rows.filter(({ path }) => !directories.some((git) => isWithin(path, git.path) || isWithin(git.path, path)));
}

interface ConfigFile {
  readonly file: string;
  readonly entries: readonly GitConfigEntry[];
}

/** A file and the files that it includes under any condition. */
function readConfig(file: string, homes: readonly string[], depth = 5): readonly ConfigFile[] {
  const text = readText(file);
  if (text === undefined || depth === 0) return [];
  const { entries } = parseGitConfig(text);
  const includes = entries.flatMap(({ key, value }) =>
    /^include(?:if\..*)?\.path$/s.test(key) && value ? [value] : [],
  );
  return [
    { file, entries },
    ...includes.flatMap((path) => readConfig(pathFrom(dirname(file), path, homes), homes, depth - 1)),
  ];
}

function rowsOf(
  { file, entries }: ConfigFile,
  top: string,
  homes: readonly string[],
  workspacePath: string,
): readonly Place[] {
  const { files, directories, programs } = targetsOf(entries);
  const found = (path: string) => {
    const real = canonical(path);
    return real !== workspacePath && isWithin(workspacePath, real) ? [real] : [];
  };
  const included = files
    .flatMap((path) => [pathFrom(dirname(file), path, homes), pathFrom(top, path, homes)])
    .flatMap(found);
  const hooks = directories.flatMap((path) => found(pathFrom(top, path, homes)));
  const started = programs
    .flatMap((path) => found(pathFrom(top, path, homes)))
    .filter((path) => statOf(path)?.isFile() === true);
  const rows: readonly Place[] = [
    ...included.flatMap((path) => (isRegular(path) ? [{ path, access: 'read' as const }] : absent(path, 'absentFile'))),
    ...hooks.flatMap((path) => (statOf(path) ? [{ path, access: 'read' as const }] : absent(path, 'absentDirectory'))),
    ...started.map((path) => ({ path, access: 'read' as const })),
  ];
  const above = rows.flatMap(({ path }) => between(workspacePath, path)).filter(isPlainDirectory);
  return [...above.map((path) => ({ path, access: 'write' as const })), ...rows];
}

const isRegular = (path: string): boolean => statOf(path)?.isFile() === true;
const absent = (path: string, access: 'absentFile' | 'absentDirectory'): readonly Place[] =>
  statOf(path, lstatSync) ? [] : [{ path, access }];

const pathFrom = (directory: string, path: string, [home = '/']: readonly string[]): string =>
  resolve(directory, path.replace(/^~(?:\/|$)/, `${home}/`));

function readText(path: string): string | undefined {
  try {
    return statOf(path)?.isFile() ? readFileSync(path, 'utf8') : undefined;
  } catch {
    return undefined;
  }
}
