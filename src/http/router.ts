import { HttpError } from './http-error.ts';
import type { AnyRoute, AnyWebSocketRoute, Method } from './types.ts';

export type { AnyRoute, AnyWebSocketRoute };

/** All that is served under one path pattern. */
export interface Resource {
  readonly path: string;
  readonly ignoreCase: boolean;
  readonly methods: Map<Method, AnyRoute>;
  webSocket: AnyWebSocketRoute | undefined;
  /** Value of `Allow`: HEAD works where GET does. */
  allow: string;
  /** Undefined for a literal path; in lower case, but for the names, when case is ignored. */
  readonly segments: readonly string[] | undefined;
}

export type Params = Readonly<Record<string, string>>;
export const noParams: Params = Object.freeze(Object.create(null));

const isPattern = (path: string) => /(?:^|\/)(?::|\*$)/.test(path);

const folded = (segment: string): string => (segment.startsWith(':') ? segment : segment.toLowerCase());

/** Literal segments before `:name`, those before `*`: the most exact pattern is asked first. */
function specificity(segments: readonly string[]): string {
  return segments.map((segment) => (segment === '*' ? '2' : segment.startsWith(':') ? '1' : '0')).join('');
}

function decoded(segment: string): string {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new HttpError(400, 'invalidRequest', 'The path is not valid percent-encoding.');
  }
}

function matchSegments(pattern: readonly string[], given: readonly string[], ignoreCase: boolean): Params | undefined {
  const wild = pattern.at(-1) === '*';
  if (wild ? given.length < pattern.length : given.length !== pattern.length) return undefined;
  let params: Record<string, string> | undefined;
  // Without an iterator: most patterns differ in their first segment, and every request is compared with many.
  for (let index = 0; index < pattern.length; index += 1) {
    const expected = pattern[index] ?? '';
    const segment = given[index] ?? '';
    if (expected === '*') {
      params ??= Object.create(null) as Record<string, string>;
      params['*'] = given.slice(index).map(decoded).join('/');
    } else if (expected.startsWith(':')) {
      if (segment === '') return undefined;
      params ??= Object.create(null) as Record<string, string>;
      params[expected.slice(1)] = decoded(segment);
    } else if ((ignoreCase ? segment.toLowerCase() : segment) !== expected) return undefined;
  }
  return params ?? noParams;
}

/**
 * Paths to resources. The most exact pattern that matches a path decides alone: a method it lacks is 405, however many
 * broader patterns would take it (RFC 9110, section 15.5.6).
 */
export class Router {
  readonly literals = new Map<string, Resource>();
  /** Literal paths that are matched in any case, by their lower case. */
  readonly #folded = new Map<string, Resource>();
  readonly #patterns: Resource[] = [];

  constructor(routes: readonly AnyRoute[], webSockets: readonly AnyWebSocketRoute[]) {
    for (const route of routes) {
      const { methods, ignoreCase } = this.#resource(route.path, route.ignoreCase);
      if (ignoreCase !== (route.ignoreCase === true)) throw new TypeError(`one case rule for ${route.path}`);
      if (methods.has(route.method)) throw new TypeError(`two routes for ${route.method} ${route.path}`);
      methods.set(route.method, route);
    }
    for (const route of webSockets) this.#resource(route.path).webSocket = route;
    for (const resource of [...this.literals.values(), ...this.#patterns]) {
      const allowed: string[] = [...resource.methods.keys()];
      if (resource.webSocket !== undefined && !allowed.includes('GET')) allowed.push('GET');
      if (resource.methods.has('GET')) allowed.push('HEAD');
      resource.allow = allowed.sort().join(', ');
    }
    this.#patterns.sort((a, b) => (specificity(a.segments ?? []) < specificity(b.segments ?? []) ? -1 : 1));
  }

  #resource(path: string, ignoreCase = false): Resource {
    if (!path.startsWith('/')) throw new TypeError(`a route's path begins with a slash: ${path}`);
    const pattern = isPattern(path);
    const known = pattern
      ? this.#patterns.find((each) => each.path === path)
      : (this.literals.get(path) ?? (ignoreCase ? this.#folded.get(path.toLowerCase()) : undefined));
    if (known !== undefined) return known;
    const resource: Resource = {
      path,
      ignoreCase,
      methods: new Map(),
      webSocket: undefined,
      allow: '',
      segments: pattern ? path.split('/').map((segment) => (ignoreCase ? folded(segment) : segment)) : undefined,
    };
    if (pattern) this.#patterns.push(resource);
    else this.literals.set(path, resource);
    if (ignoreCase && !pattern) this.#folded.set(path.toLowerCase(), resource);
    return resource;
  }

  /** Throws HttpError 400 for a path that cannot be decoded. */
  find(path: string): { resource: Resource; params: Params } | undefined {
    const literal =
      this.literals.get(path) ?? (this.#folded.size > 0 ? this.#folded.get(path.toLowerCase()) : undefined);
    if (literal !== undefined) return { resource: literal, params: noParams };
    if (this.#patterns.length === 0) return undefined;
    const given = path.split('/');
    for (const resource of this.#patterns) {
      const params = resource.segments && matchSegments(resource.segments, given, resource.ignoreCase);
      if (params !== undefined) return { resource, params };
    }
    return undefined;
  }
}
