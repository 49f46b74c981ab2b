import { existsSync, readFileSync, readlinkSync } from 'node:fs';
import { basename, dirname, join, sep } from 'node:path';

/** An installation by `install.sh`: a directory of versions, and the link `current` to one of them. */
export interface OwnInstallation {
  readonly kind: 'own';
  readonly base: string;
  /** Address of the release that was installed; undefined when it was not saved. */
  readonly source: string | undefined;
}

/** An installation that another program updates. */
export interface ForeignInstallation {
  readonly kind: 'foreign';
  /** In words: `npm`, `Homebrew`. */
  readonly by: string;
  /** Command that updates it. */
  readonly update: string;
}

export type Installation = OwnInstallation | ForeignInstallation;

/** Most bytes of an address. */
const addressBytes = 4_096;

/** Finds out how the program in a directory was installed. @param root directory of its package.json, without links */
export function installationAt(root: string): Installation {
  const parts = root.split(sep);
  const base = dirname(dirname(root));
  if (basename(dirname(root)) === 'versions' && isLink(join(base, 'current')))
    return { kind: 'own', base, source: sourceOf(base) };
  if (parts.includes('Cellar')) return { kind: 'foreign', by: 'Homebrew', update: 'brew upgrade oratorio' };
  if (root === '/usr/lib/oratorio')
    return { kind: 'foreign', by: 'a Debian package', update: 'sudo apt install ./oratorio_VERSION_ARCHITECTURE.deb' };
  if (parts.at(-2) === 'node_modules') return { kind: 'foreign', by: 'npm', update: 'npm install -g oratorio@latest' };
  if (existsSync(join(root, '.git')))
    return { kind: 'foreign', by: 'a checkout of git', update: 'git pull && npm start' };
  const update = `sh ${join(root, 'install.sh')}`;
  return { kind: 'foreign', by: 'hand', update };
}

/** Directory name of the version that `current` leads to. */
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
