import { type lstatSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { isWithin } from '../paths.ts';
import { type Access, strictness } from './sandbox-rule.ts';

/** Path, and the access of commands to it. */
export interface PathAccess {
  /** Canonical: no part that exists is a symlink. */
  readonly path: string;
  readonly access: Access;
}

/** State of a path; undefined where it is missing or cannot be read. */
export function statOf(path: string, stat: typeof lstatSync | typeof statSync = statSync): Stats | undefined {
  try {
    return stat(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Places of a sandbox by path. The longest path that contains a file decides; of two rows for one path the stricter one. */
export class MountPlan {
  readonly #places = new Map<string, Access>();

  constructor(base: readonly PathAccess[]) {
    for (const { path, access } of base) this.#places.set(path, access);
  }

  add(...places: readonly PathAccess[]): void {
    for (const { path, access } of places) {
      const known = this.#places.get(path);
      if (known === undefined || strictness.indexOf(access) > strictness.indexOf(known)) this.#places.set(path, access);
    }
  }

  /** Sets a place and replaces its row. */
  set({ path, access }: PathAccess): void {
    this.#places.set(path, access);
  }

  /** Row that decides about a path. */
  rowOf(path: string): PathAccess {
    for (let place = path; ; place = dirname(place)) {
      const access = this.#places.get(place);
      if (access !== undefined) return { path: place, access };
      if (place === dirname(place)) return { path: place, access: 'read' };
    }
  }

  /** Access to a path. */
  at(path: string): Access {
    return this.rowOf(path).access;
  }

  /** Whether a command can see this path. */
  shows(path: string): boolean {
    const access = this.at(path);
    return access === 'read' || access === 'write';
  }

  /** All places, a directory before the places in it. A hidden place in a hidden one is left out, unless it holds others. */
  places(): readonly PathAccess[] {
    const places = [...this.#places].map(([path, access]) => ({ path, access }));
    const around = new Set(places.flatMap(({ path }) => parentsOf(path)));
    return places
      .filter(({ path, access }) => !isHiding(access) || this.shows(dirname(path)) || around.has(path))
      .sort((one, other) => depth(one.path) - depth(other.path) || (one.path < other.path ? -1 : 1));
  }
}

const isHiding = (access: Access): boolean => access === 'hidden' || access === 'absentHidden';
const depth = (path: string): number => (path === '/' ? 0 : path.split('/').length);

function parentsOf(path: string): readonly string[] {
  const parent = dirname(path);
  return parent === path ? [] : [parent, ...parentsOf(parent)];
}

/** Directories between `top` and `path`, without both; empty unless `path` is below `top`. */
export function between(top: string, path: string): readonly string[] {
  const found: string[] = [];
  for (let at = dirname(path); at !== top && isWithin(top, at) && at !== dirname(at); at = dirname(at))
    found.unshift(at);
  return found;
}
