import { Refusal } from './auth.ts';
import type { Forge } from './forge.ts';
import type { ForgePull, ForgeRepository, ForgeToken } from './model.ts';
import type { Json } from './schema.ts';

/** A request, with the objects that its path, its token and its body name. */
export interface Asked {
  readonly forge: Forge;
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly body: Json;
  readonly ifNoneMatch: string | undefined;
  readonly repo: ForgeRepository;
  readonly token: ForgeToken;
}
export interface Answered {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}
export interface Route {
  readonly method: string;
  readonly path: string;
  /** `app`: a JWT. Else the permissions of which the token must have one. */
  readonly needs: 'app' | readonly string[];
  readonly handle: (asked: Asked) => Answered | Promise<Answered>;
}

export const ok = (body: unknown, status = 200): Answered => ({ status, body });
export const repoPath = ({ repo }: Asked): string => `/repos/${repo.owner}/${repo.name}`;
export const word = (value: unknown): string => (typeof value === 'string' ? value : '');
export const whole = (value: unknown): number | null => (typeof value === 'number' ? value : null);

/** @throws Refusal 404 */
export function pullOf({ repo, params }: Asked): ForgePull {
  const found = repo.pulls.get(Number(params['pull_number'] ?? params['issue_number']));
  if (!found) throw new Refusal(404, 'Not Found');
  return found;
}

const longestBody = 65_536;

/** @throws Refusal 422 */
export function checkedBody(value: unknown): string {
  const body = word(value);
  if (body.length > longestBody)
    throw new Refusal(422, 'Validation Failed', { errors: ['body is too long (maximum is 65536 characters)'] });
  return body;
}

interface Listed<T> {
  readonly path: string;
  readonly rows: readonly T[];
  readonly shown: (row: T) => unknown;
  /** Name of the list, where it is not the answer itself. */
  readonly wrap?: string;
}

/** One page, with a `Link` as GitHub writes it. */
export function page<T>({ forge, query }: Asked, { path, rows, shown, wrap }: Listed<T>): Answered {
  const size = Math.min(100, Number(query.get('per_page') ?? 30));
  const number = Number(query.get('page') ?? 1);
  const next = new URLSearchParams(query);
  next.set('page', String(number + 1));
  const listed = rows.slice((number - 1) * size, number * size).map(shown);
  return {
    status: 200,
    body: wrap === undefined ? listed : { total_count: rows.length, [wrap]: listed },
    ...(rows.length > number * size && {
      headers: { link: `<${forge.apiUrl}${path}?${next}>; rel="next", <${forge.apiUrl}${path}>; rel="last"` },
    }),
  };
}

/** Rows that lists return by now: like GitHub's, they lag behind writes. */
export const listed = <T extends { readonly createdAt: number }>({ forge }: Asked, rows: readonly T[]): T[] =>
  rows.filter(({ createdAt }) => createdAt + forge.listLagMs <= forge.now());
