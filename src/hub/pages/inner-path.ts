import { dashboardPaths, exchangePath, hostPageShape, proofPaths, workspacePageShape } from '../../protocol/index.ts';

/** A path below `/w/<id>/`, or below `/h/<host>/w/<id>/`. */
export interface PagePath {
  /** Name of the host; null for a workspace of this machine. */
  readonly host: string | null;
  readonly id: string;
  /** Rest after the id, as the client wrote it: `` for `/w/<id>`, `/` for the page. */
  readonly rest: string;
}

/** Parses the raw path of a request; undefined for one that no workspace can have. Nothing is decoded. */
export function pagePathOf(path: string): PagePath | undefined {
  const [prefix = '', host = null] = hostPageShape.exec(path) ?? [];
  const [whole, id] = workspacePageShape.exec(path.slice(prefix.length)) ?? [];
  if (whole === undefined || id === undefined) return undefined;
  return { host, id, rest: path.slice(prefix.length + whole.length) };
}

/** Printable ASCII without `?` and `#`, which end a path, and without a backslash, which some programs take for a slash. */
const plain = /^[!"$->@-[\]-~]+$/;
const dots = /^\.{1,2}$/;

/**
 * Paths that stay inside: they lead to a token of the agent server, or prove one. A page of the Hub needs neither, because it
 * holds the page token only.
 */
const closed: ReadonlySet<string> = new Set(
  [dashboardPaths.auth, dashboardPaths.login, dashboardPaths.logout, exchangePath, proofPaths.dashboard].map((path) =>
    path.toLowerCase(),
  ),
);

/** The path to ask of the agent server for `rest`, or undefined: only the Dashboard is passed on, and `..` never. */
export function innerPathOf(rest: string): string | undefined {
  if (!plain.test(rest) || !/^\/dashboard\/[^/]/i.test(rest)) return undefined;
  const decoded = decodedSegments(rest);
  if (decoded === undefined || decoded.slice(1).some((segment) => segment === '' || dots.test(segment)))
    return undefined;
  return closed.has(decoded.join('/').toLowerCase()) ? undefined : rest;
}

/** Segments for the check only: the forwarded path stays unchanged, `%2f` included. */
function decodedSegments(path: string): readonly string[] | undefined {
  const segments = path.split('/');
  if (!path.includes('%')) return segments;
  try {
    return segments.map((segment) => decodeURIComponent(segment));
  } catch {
    return undefined;
  }
}
