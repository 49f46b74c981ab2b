import { type ReadonlySignal, signal } from '@preact/signals';
import { type ViewName, viewNames } from './server.ts';

/**
 * Location of this tab: everything a link must restore. It is in the fragment, `#/sessions/thread_1?event=7`, which no
 * server receives.
 */
export interface Route {
  readonly view: ViewName;
  /** Segments behind the view, decoded. */
  readonly path: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

export interface Router {
  readonly route: ReadonlySignal<Route>;
  /** Opens a route; `replace` adds no step for the back button (typing in a filter, moving a selection). */
  go(route: To, replace?: boolean): void;
  /** Changes parameters of the query; undefined and '' remove one. Replaces the current step of history. */
  set(query: Readonly<Record<string, string | undefined>>): void;
  close(): void;
}

/** A route as a caller writes it. */
export interface To {
  readonly view: ViewName;
  readonly path?: readonly string[];
  readonly query?: Readonly<Record<string, string | undefined>>;
}

/** The address of a route, for `href`. */
export function href({ view, path = [], query = {} }: To): string {
  const search = new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) => (value === undefined || value === '' ? [] : [[name, value]])),
  ).toString();
  return `#/${[view, ...path].map(encodeURIComponent).join('/')}${search && `?${search}`}`;
}

/** Parses a fragment; an unknown view becomes the first view. */
export function routeOf(hash: string, firstView: ViewName): Route {
  const [before = '', search = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const [first = '', ...rest] = before.split('/').map(decoded);
  const view = viewNames.find((each) => each === first) ?? firstView;
  return { view, path: rest.filter((each) => each !== ''), query: Object.fromEntries(new URLSearchParams(search)) };
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

export function createRouter(firstView: ViewName): Router {
  const route = signal(routeOf(location.hash, firstView));
  const follow = () => {
    route.value = routeOf(location.hash, firstView);
  };
  addEventListener('hashchange', follow);
  addEventListener('popstate', follow);
  return {
    route,
    go(to, replace = false) {
      history[replace ? 'replaceState' : 'pushState'](null, '', href(to));
      follow();
    },
    set(query) {
      const { view, path, query: present } = route.peek();
      history.replaceState(null, '', href({ view, path, query: { ...present, ...query } }));
      follow();
    },
    close() {
      removeEventListener('hashchange', follow);
      removeEventListener('popstate', follow);
    },
  };
}
