import { lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import { canonicalPath } from '../../../lib/index.ts';
import { isWithin } from '../paths.ts';
import { type GitConfigEntry, parseGitConfig, targetsOf } from './git-config.ts';
import { readRegular } from './git-state.ts';
import { homesOf } from './home-places.ts';
import { between, type PathAccess, statOf } from './mount-plan.ts';
import { gitAbsent, isGitWork } from './sandbox-rule.ts';

/** A git directory to protect. */
export interface GitDirectory {
  /** Canonical. */
  readonly path: string;
  /** Directories that paths of its configuration start from: the tops of its files, one for each worktree. */
  readonly tops: readonly string[];
  /** Part of a worktree: hooks and configuration are in the common directory. */
  readonly isLinked: boolean;
}

/** Rows for one git directory by the rule: the names of ordinary work can be written, every other one is read-only or cannot be made. */
export function placesOfGit({ path: git, isLinked }: GitDirectory, workspacePath: string): readonly PathAccess[] {
  const isWritable = (path: string) => isWithin(workspacePath, path) || isWithin(git, path);
  const rows: PathAccess[] = [{ path: git, access: 'write' }];
  const absentDirectories = isLinked ? gitAbsent.linkedDirectories : gitAbsent.directories;
  const absentFiles = isLinked ? gitAbsent.linkedFiles : gitAbsent.files;
  for (const name of namesOf(git).filter((each) => !isGitWork(each) && !isTemporary(each))) {
    const path = join(git, name);
    const target = statOf(path, lstatSync)?.isSymbolicLink() ? canonicalPath(path) : path;
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

/** Files of the workspace that git uses from elsewhere. */
export interface ConfigPlaces {
  readonly places: readonly PathAccess[];
  /** Links on the way to them, with their targets: no mount can close a link. */
  readonly links: ReadonlyMap<string, string>;
}

/**
 * Rows for files of the workspace that git uses from elsewhere: hooks of `core.hooksPath`, included files, programs of filters and aliases,
 * targets of hooks that are links. A directory on the way cannot be moved.
 *
 * @param directories git directories of the workspace, and of the repository around it
 */
export function placesOfConfig(
  directories: readonly GitDirectory[],
  workspacePath: string,
  environment: Environment,
): ConfigPlaces {
  const homes = homesOf(environment);
  const xdg = environment['XDG_CONFIG_HOME'];
  const shared = [
    '/etc/gitconfig',
    ...(xdg !== undefined && isAbsolute(xdg) ? [join(xdg, 'git/config')] : []),
    ...homes.flatMap((home) => ['.gitconfig', '.config/git/config'].map((name) => join(home, name))),
  ].flatMap((file) => readConfig(file, homes));
  const named = directories.flatMap(({ path, tops }) => {
    const own = ['config', 'config.worktree'].flatMap((name) => readConfig(join(path, name), homes));
    const trees = own.flatMap(({ entries }) =>
      entries.flatMap(({ key, value }) => (key === 'core.worktree' && value ? [pathFrom(path, value, homes)] : [])),
    );
    const ofTops = [...new Set([...tops, ...trees])].flatMap((top) =>
      [...shared, ...own].flatMap((config) => namedBy(config, top, homes)),
    );
    return [...ofTops, ...hooksBehindLinks(join(path, 'hooks'))];
  });
  const links = new Map<string, string>();
  const rows = [...new Map(named.map((each) => [`${each.access} ${each.path}`, each])).values()].flatMap((each) =>
    rowsOf(each, workspacePath, links),
  );
  const isOfGit = (path: string) => directories.some((git) => isWithin(path, git.path) || isWithin(git.path, path));
  for (const path of links.keys()) if (isOfGit(path)) links.delete(path);
  return { places: rows.filter(({ path }) => !isOfGit(path)), links };
}

/** Bound of the files that one configuration includes. */
const maxConfigFiles = 1_000;

interface ConfigFile {
  readonly file: string;
  readonly entries: readonly GitConfigEntry[];
}

/** A file and the files that it includes under any condition, each once. @param known files that were read before */
function readConfig(file: string, homes: readonly string[], known = new Set<string>()): readonly ConfigFile[] {
  const text = known.has(file) || known.size >= maxConfigFiles ? undefined : readRegular(file, true)?.toString();
  if (text === undefined) return [];
  known.add(file);
  const { entries } = parseGitConfig(text);
  const includes = entries.flatMap(({ key, value }) =>
    /^include(?:if\..*)?\.path$/s.test(key) && value ? [value] : [],
  );
  return [
    { file, entries },
    ...includes.flatMap((path) => readConfig(pathFrom(dirname(file), path, homes), homes, known)),
  ];
}

/** A path as git would use it, with the access to it where it is missing; `read`: a missing one is left alone. */
interface NamedPath {
  readonly path: string;
  readonly access: 'read' | 'absentFile' | 'absentDirectory';
}

function namedBy({ file, entries }: ConfigFile, top: string, homes: readonly string[]): readonly NamedPath[] {
  const { files, directories, programs, surePrograms } = targetsOf(entries);
  const atTop = (path: string) => pathFrom(top, path, homes);
  const hooks = directories.map(atTop);
  return [
    ...files
      .flatMap((path) => [pathFrom(dirname(file), path, homes), atTop(path)])
      .map((path) => ({ path, access: 'absentFile' as const })),
    ...hooks.map((path) => ({ path, access: 'absentDirectory' as const })),
    // Husky: these hooks run the files beside their directory.
    ...hooks.filter((path) => basename(path) === '_').map((path) => ({ path: dirname(path), access: 'read' as const })),
    ...hooks.flatMap(hooksBehindLinks),
    ...surePrograms.map((path) => ({ path: atTop(path), access: 'absentFile' as const })),
    ...programs
      .map(atTop)
      .filter((path) => statOf(path)?.isFile() === true)
      .map((path) => ({ path, access: 'read' as const })),
  ];
}

/** Hooks of a directory that are links. */
function hooksBehindLinks(directory: string): readonly NamedPath[] {
  return namesOf(directory)
    .map((name) => join(directory, name))
    .filter((path) => statOf(path, lstatSync)?.isSymbolicLink() === true)
    .map((path) => ({ path, access: 'absentFile' }));
}

/** Rows for one path, where it lies in the workspace. @param links receives links of the workspace on the way */
function rowsOf({ path, access }: NamedPath, workspacePath: string, links: Map<string, string>): readonly PathAccess[] {
  const onTheWay = linksTo(path).filter(([link]) => isWithin(workspacePath, link));
  for (const [link, target] of onTheWay) links.set(link, target);
  const real = canonicalPath(path);
  const isInside = real !== workspacePath && isWithin(workspacePath, real);
  const kind = statOf(real);
  const isExpected = access === 'absentFile' ? kind?.isFile() : kind !== undefined;
  const own: readonly PathAccess[] = !isInside
    ? []
    : isExpected
      ? [{ path: real, access: 'read' }]
      : kind || access === 'read'
        ? []
        : [{ path: real, access }];
  const fixed = [...own.map((row) => row.path), ...onTheWay.map(([link]) => link)];
  const above = fixed.flatMap((each) => between(workspacePath, each)).filter(isPlainDirectory);
  return [...above.map((each) => ({ path: each, access: 'write' as const })), ...own];
}

/** Links that are followed on the way to a path, with their targets. */
function linksTo(path: string, left = 40): readonly (readonly [string, string])[] {
  let at = '/';
  const names = path.split('/').filter((name) => name !== '');
  for (const [index, name] of names.entries()) {
    at = join(at, name);
    if (!statOf(at, lstatSync)?.isSymbolicLink()) continue;
    const target = readlinkSync(at);
    const rest = join(resolve(dirname(at), target), ...names.slice(index + 1));
    return [[at, target], ...(left === 0 ? [] : linksTo(rest, left - 1))];
  }
  return [];
}

const pathFrom = (directory: string, path: string, [home = '/']: readonly string[]): string =>
  resolve(directory, path.replace(/^~(?:\/|$)/, `${home}/`));
