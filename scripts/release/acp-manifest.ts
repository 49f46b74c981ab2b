/** Our entry for the registry of agents (github.com/agentclientprotocol/registry): `oratorio/agent.json` and `oratorio/icon.svg` there. */
interface Package {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly homepage: string;
  readonly repository: { readonly url: string };
}

/** Tarball of a release, and the directory in it. */
export interface AcpArchive {
  readonly os: string;
  readonly arch: string;
  readonly address: string;
  readonly directory: string;
}

/** Programs by platform, in the format of the registry; undefined without tarballs. */
function binariesOf(archives: readonly AcpArchive[]) {
  if (archives.length === 0) return undefined;
  const entries = archives.map(({ os, arch, address, directory }) => {
    const target = { archive: address, cmd: `./${directory}/bin/oratorio`, args: ['acp'] };
    return [`${os}-${arch === 'x64' ? 'x86_64' : 'aarch64'}`, target] as const;
  });
  return Object.fromEntries(entries);
}

/** Content of `agent.json`. @throws Error for a version that the registry does not take: it lists releases only */
export function acpManifest(
  { name, version, description, license, homepage, repository }: Package,
  archives: readonly AcpArchive[] = [],
) {
  if (!/^\d+\.\d+\.\d+$/.test(version)) throw new Error(`The registry of agents takes no version ${version}.`);
  const binary = binariesOf(archives);
  const source = repository.url.replace(/^git\+/, '').replace(/\.git$/, '');
  return {
    id: name,
    name: 'Oratorio',
    version,
    description,
    repository: source,
    website: homepage.replace(/#.*$/, ''),
    license,
    license_url: `${source}/blob/v${version}/LICENSE`,
    distribution: { npx: { package: `${name}@${version}`, args: ['acp'] }, ...(binary && { binary }) },
  };
}

/** Icon of 16 by 16 in the colour of the text, as the registry demands. */
export const acpIcon = `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16"><circle cx="7" cy="9" r="4.5" fill="none" stroke="currentColor" stroke-width="2"/><circle cx="12.5" cy="3.5" r="2.5" fill="currentColor"/></svg>
`;
