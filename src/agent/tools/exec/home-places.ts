import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { userInfo } from 'node:os';
import { basename, delimiter, dirname, isAbsolute, join, resolve } from 'node:path';
import { canonicalPath } from '../../../lib/index.ts';
import { toolChainEnvironment } from '../../../supervise/index.ts';
import { isWithin } from '../paths.ts';
import { parseGitConfig, targetsOf } from './git-config.ts';
import { type PathAccess, statOf } from './mount-plan.ts';
import { agentNames, homeNames, secretNames } from './sandbox-rule.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Facts that decide which part of the home a command sees. */
export interface HomeOptions {
  readonly environment: Environment;
  readonly workspacePath: string;
  /** `Tools.Shell.VisibleHome`: paths, absolute, from `~`, or relative to the home. */
  readonly visible: readonly string[];
}

/** Places in the homes of the user, and links that stand in them. */
export interface HomePlaces {
  readonly places: readonly PathAccess[];
  /** Links of a hidden home that lead to a visible place: target by path. */
  readonly links: ReadonlyMap<string, string>;
}

/** Directories that hold the system: a home around one of them stays visible. */
const systemDirectories = ['/usr', '/bin', '/lib', '/etc', '/var', '/opt', '/nix'];

/** Variables that name a directory with credentials of an agent. */
const agentVariables = ['CODEX_HOME', 'CLAUDE_CONFIG_DIR', 'PI_CODING_AGENT_DIR'];

/** Canonical homes: from the environment, and from the user's account. */
export function homesOf(environment: Environment): readonly string[] {
  const named = environment['HOME'];
  // `homedir` throws for a user without an account, whose commands need no home.
  const homes = [named !== undefined && isAbsolute(named) ? named : (process.env['HOME'] ?? ''), accountHome() ?? ''];
  return [...new Set(homes.filter((path) => isAbsolute(path)).map((path) => canonicalPath(path)))];
}

let account: { readonly home: string | undefined } | undefined;

/** Home of the user's account, looked up once. */
function accountHome(): string | undefined {
  try {
    account ??= { home: userInfo().homedir };
  } catch {
    account = { home: undefined };
  }
  return account.home;
}

/** Rows for the homes of the user: hidden, except for the places that programs need. The workspace may lie below, or around them. */
export function homePlaces(options: HomeOptions): HomePlaces {
  const { environment, workspacePath, visible } = options;
  const homes = homesOf(environment);
  const hidden = homes.filter(
    (home) => !isWithin(workspacePath, home) && !systemDirectories.some((path) => isWithin(home, path)),
  );
  const asked = homes.flatMap((home) => visible.map((path) => resolve(home, path.replace(/^~(?:\/|$)/, './'))));
  const isAsked = (path: string) => asked.some((place) => isWithin(place, path));
  const links = new Map<string, string>();
  const namesOf = new Map(homes.map((home) => [home, new HomeNames(home)]));
  const present = (home: string, names: readonly string[]) =>
    names.filter((name) => namesOf.get(home)?.mayHave(name)).map((name) => join(home, name));
  const shown = hidden.flatMap((home) => {
    const wanted = [
      ...present(home, homeNames),
      ...asked.filter((path) => isWithin(home, path)),
      ...toolPlaces(home, environment),
      ...gitFiles(home),
    ];
    return wanted.flatMap((path) => show(home, path, links));
  });
  const secrets = homes.flatMap((home) => present(home, secretNames)).filter((path) => !isAsked(path));
  const ofAgents = [
    ...homes.flatMap((home) => present(home, agentNames)),
    ...agentVariables.flatMap((name) => environment[name] ?? []).filter(isAbsolute),
  ];
  const closed = [...new Set([...secrets, ...ofAgents])]
    .filter((path) => statOf(path) !== undefined)
    .map((path) => canonicalPath(path))
    .filter((path) => !isWithin(path, workspacePath));
  return {
    places: [
      ...hidden.map((path) => ({ path, access: 'hidden' as const })),
      ...shown.map((path) => ({ path, access: 'read' as const })),
      ...closed.map((path) => ({ path, access: 'hidden' as const })),
    ],
    links,
  };
}

/** Names of a home and of its directories, to leave out most of the names that are missing with a few system calls. */
class HomeNames {
  readonly #home: string;
  readonly #listed = new Map<string, ReadonlySet<string> | undefined>();

  constructor(home: string) {
    this.#home = home;
  }

  mayHave(path: string): boolean {
    const [name = '', ...below] = path.split('/');
    const [next] = below;
    return this.#has('', name) && (next === undefined || this.#has(name, next));
  }

  #has(directory: string, name: string): boolean {
    if (!this.#listed.has(directory)) this.#listed.set(directory, namesIn(join(this.#home, directory)));
    return this.#listed.get(directory)?.has(folded(name)) ?? true;
  }
}

/** Undefined: a directory that cannot be listed may hold every name. */
function namesIn(directory: string): ReadonlySet<string> | undefined {
  try {
    return new Set(readdirSync(directory).map(folded));
  } catch {
    return undefined;
  }
}

/** Equal for names that some file system takes for the same name in ASCII. */
const folded = (name: string): string => name.normalize('NFKC').toLowerCase();

/** Canonical places to open for a path of the home; links on the way are recorded. */
function show(home: string, path: string, links: Map<string, string>): string[] {
  if (statOf(path) === undefined || path === home) return [];
  const real = canonicalPath(path);
  // Each link on the way stands in the hidden home with its own name.
  let at = home;
  for (const name of path.slice(home.length + 1).split('/')) {
    at = join(at, name);
    if (!statOf(at, lstatSync)?.isSymbolicLink()) continue;
    links.set(at, readlinkSync(at));
    break;
  }
  return isWithin(home, real) && real !== home ? [real] : [];
}

/** Directories of programs and tool chains below the home that variables name. */
function toolPlaces(home: string, environment: Environment): string[] {
  const search = [...(environment['PATH'] ?? '').split(delimiter), dirname(process.execPath)];
  const programs = search
    .filter((path) => isAbsolute(path) && path !== home && isWithin(home, canonicalPath(path)))
    .flatMap((path) => [path, ...around(home, path)]);
  const chains = Object.entries(toolChainEnvironment(environment))
    .filter(([name]) => name !== 'PATH')
    .flatMap(([, value]) => value.split(delimiter))
    .filter((path) => isAbsolute(path) && path !== home && isWithin(home, canonicalPath(path)));
  return [...programs, ...chains];
}

/** Directory around `bin`, because a program needs its neighbours, e.g. `lib`; none for the home and for a directory of many programs. */
function around(home: string, path: string): string[] {
  const parent = dirname(path);
  const isShared = [home, join(home, '.local'), join(home, '.config'), join(home, '.cache')].includes(parent);
  return ['bin', 'sbin', 'shims'].includes(basename(path)) && !isShared && isWithin(home, parent) ? [parent] : [];
}

/** Files that the user's configuration of git names, e.g. with `include.path`. */
function gitFiles(home: string): string[] {
  return ['.gitconfig', '.config/git/config'].flatMap((name) => {
    const file = join(home, name);
    const text = readText(file);
    if (text === undefined) return [];
    const { files, directories } = targetsOf(parseGitConfig(text).entries);
    const named = [...files, ...directories].map((path) => resolve(dirname(file), path.replace(/^~\//, `${home}/`)));
    return named.filter((path) => isWithin(home, path) && path !== home && !isHomeDirectory(home, path));
  });
}

/** A directory that holds more than settings of git. */
const isHomeDirectory = (home: string, path: string): boolean =>
  ['.config', '.local', '.local/share', '.cache'].some((name) => path === join(home, name));

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
