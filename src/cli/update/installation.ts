import { existsSync, readFileSync, readlinkSync } from 'node:fs';
import { basename, dirname, join, sep } from 'node:path';

/** An installation by `install.sh`: a directory of versions, and the link `current` to one version. */
export interface OwnInstallation {
  readonly kind: 'own';
  readonly base: string;
  /** Address of the installed release; undefined if none was saved. */
  readonly source: string | undefined;
}

/** An installation that another program updates. */
export interface ForeignInstallation {
  readonly kind: 'foreign';
  /** Name of that program, such as `npm` or `Homebrew`. */
  readonly by: string;
  /** Command that updates the installation. */
  readonly update: string;
}

export type Installation = OwnInstallation | ForeignInstallation;

/** Size limit of an address, in bytes. */
const addressBytes = 4_096;

/** Detects how the program in a directory was installed. @param root directory of its package.json, without links */
export function installationAt(root: string): Installation {
  const parts = root.split(sep);
  const base = dirname(dirname(root));
  if (basename(dirname(root)) === 'versions' && isLink(join(base, 'current')))
    return { kind: 'own', base, source: sourceOf(base) };
  if (parts.includes('Cellar')) return { kind: 'foreign', by: 'Homebrew', update: 'brew upgrade oratorio' };
  if (root === '/usr/lib/oratorio')
    return { kind: 'foreign', by: 'a Debian package', update: 'sudo apt install ./oratorio_VERSION_ARCHITECTURE.deb' };
  if (parts.at(-2) === 'node_modules') return { kind: 'foreign', by: 'npm', update: 'npm install -g oratorio@latest' };
  if (existsSync(join(root, '.git'))) return { kind: 'foreign', by: 'a git checkout', update: 'git pull && npm start' };
  const update = `sh ${join(root, 'install.sh')}`;
  return { kind: 'foreign', by: 'hand', update };
}

/** Directory name of the version that `current` points to. */
export const currentVersion = ({ base }: OwnInstallation): string => basename(readlinkSync(join(base, 'current')));

function isLink(path: string): boolean {
  try {
    readlinkSync(path);
    return true;
  } catch {
    return false;
  }
}

function sourceOf(base: string): string | undefined {
  try {
    const text = readFileSync(join(base, 'source'), 'utf8').slice(0, addressBytes).trim();
    return text === '' ? undefined : text;
  } catch {
    return undefined;
  }
}
