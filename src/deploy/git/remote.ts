import { DeployError } from '../errors.ts';

/** Location of a repository, for any protocol. */
export interface Remote {
  readonly protocol: 'https' | 'http' | 'ssh' | 'file';
  /** Lower case, with a port that is not the protocol's own; empty for a directory of this machine. */
  readonly host: string;
  /** Without slashes at its ends and without `.git`. */
  readonly path: string;
}

const protocols = new Map<string, Remote['protocol']>([
  ['https:', 'https'],
  ['http:', 'http'],
  ['ssh:', 'ssh'],
  ['git+ssh:', 'ssh'],
  ['file:', 'file'],
]);

/**
 * Reads the address of a repository: `https://…`, `ssh://…`, `git@host:owner/name`, `file://…` or an absolute path.
 * @throws DeployError secretRefused for a name or password in it that would get into files, invalidInput for any other text that is
 * not such an address. Neither shows it
 */
export function parseRemote(url: string): Remote {
  if (url.startsWith('/')) return { protocol: 'file', host: '', path: tidy(url) };
  const short = /^(?:([^\s/@:]+)@)?([A-Za-z0-9][A-Za-z0-9.-]*):(?!\/\/)([^\s]+)$/.exec(url);
  if (short && !url.includes('://'))
    return { protocol: 'ssh', host: (short[2] ?? '').toLowerCase(), path: tidy(short[3] ?? '') };
  const parsed = URL.parse(url);
  const protocol = parsed && protocols.get(parsed.protocol);
  if (!parsed || !protocol || /\s/.test(url)) throw invalid();
  const isUserName = protocol === 'ssh' && parsed.password === '';
  if ((parsed.username !== '' && !isUserName) || parsed.password !== '') throw withCredentials();
  if (parsed.search !== '' || parsed.hash !== '') throw invalid();
  if (protocol !== 'file' && parsed.hostname === '') throw invalid();
  return { protocol, host: parsed.host.toLowerCase(), path: tidy(decoded(parsed.pathname)) };
}

/** Whether two addresses mean one repository. GitHub makes no difference between upper and lower case. */
export function isSameRemote(one: Remote, other: Remote): boolean {
  return hostOf(one) === hostOf(other) && one.path.toLowerCase() === other.path.toLowerCase();
}

/** Whether an address is one of `owner/name`: of the host's whole path; of a directory, the end of it. */
export function isOfRepository({ protocol, path }: Remote, repository: string): boolean {
  const [ours, wanted] = [path.toLowerCase(), repository.toLowerCase()];
  return ours === wanted || (protocol === 'file' && ours.endsWith(`/${wanted}`));
}

/** GitHub's ssh is also at port 443 of another name. */
const hostOf = ({ host }: Remote): string => host.replace(/^ssh\.github\.com(?::443)?$/, 'github.com');

const tidy = (path: string): string => path.replace(/^\/+|\/+$/g, '').replace(/\.git$/i, '');

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    throw invalid();
  }
}

const invalid = (): DeployError =>
  new DeployError(
    'invalidInput',
    'This is not the address of a repository.',
    'E.g. https://github.com/owner/name.git or git@github.com:owner/name.git',
  );

const withCredentials = (): DeployError =>
  new DeployError(
    'secretRefused',
    'The address of the repository has credentials in it, which would be stored in the checkout.',
    'Leave them out, and have git keep them: git config --global credential.helper store, or an ssh key.',
  );
