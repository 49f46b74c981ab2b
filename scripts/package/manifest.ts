/** Manifest and lock of the published package. */

/** Packages that the bundles load from `node_modules`, and those that `oratorio/client` and `oratorio/machines` share with a program. */
export const installedPackages = [
  '@vscode/ripgrep',
  'eventsource-parser',
  'superjson',
  'valibot',
  'ws',
  'xstate',
] as const;

type Versions = Readonly<Record<string, string>>;

export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly dependencies: Versions;
  readonly optionalDependencies: Versions;
  readonly [field: string]: unknown;
}

interface LockedPackage {
  readonly dependencies?: Versions;
  readonly optionalDependencies?: Versions;
  readonly peerDependencies?: Versions;
  readonly [field: string]: unknown;
}

export interface Lock {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

/** Fields that concern work on the sources only. */
const ofTheCheckout = new Set(['scripts', 'devDependencies', 'overrides', 'files']);

/** `package.json` of the package: all libraries are in its bundles but the ones named above. @throws Error for a missing one */
export function packedManifest(manifest: Manifest): Manifest {
  const dependencies = Object.fromEntries(
    installedPackages.map((name) => {
      const version = manifest.dependencies[name];
      if (version === undefined) throw new Error(`package.json has no dependency ${name}`);
      return [name, version];
    }),
  );
  const kept = Object.entries(manifest).filter(([field]) => !ofTheCheckout.has(field));
  return { ...(Object.fromEntries(kept) as Manifest), dependencies };
}

/**
 * `npm-shrinkwrap.json` of the package: only the packages of the checkout's lock that an installation takes, without addresses of a
 * registry.
 */
export function shrinkwrapOf(manifest: Manifest, lock: Lock): unknown {
  const packages: Record<string, unknown> = {};
  const waiting = Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }).map((name) => ({
    name,
    from: '',
  }));
  for (const { name, from } of waiting) {
    const path = placeOf(name, from, lock);
    if (path === undefined || path in packages) continue;
    const { resolved: _, dev: __, devOptional: ___, funding: ____, ...locked } = lock.packages[path] ?? {};
    packages[path] = locked;
    const needed = { ...locked.dependencies, ...locked.optionalDependencies };
    for (const each of Object.keys(needed)) waiting.push({ name: each, from: path });
  }
  const { name, version, license, bin, engines, dependencies, optionalDependencies } = manifest;
  const root = { name, version, license, bin, engines, dependencies, optionalDependencies };
  const sorted = Object.fromEntries(Object.entries(packages).sort(([one], [other]) => (one < other ? -1 : 1)));
  return { name, version, lockfileVersion: 3, requires: true, packages: { '': root, ...sorted } };
}

/** Where Node finds a package that the one at `from` asks for. */
function placeOf(name: string, from: string, { packages }: Lock): string | undefined {
  for (let directory = from; ; directory = directory.slice(0, directory.lastIndexOf('/node_modules/'))) {
    const path = `${directory === '' ? '' : `${directory}/`}node_modules/${name}`;
    if (path in packages) return path;
    if (!directory.includes('/node_modules/')) return directory === '' ? undefined : placeOf(name, '', { packages });
  }
}
