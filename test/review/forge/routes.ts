import type { Route } from './asked.ts';
import { appRoutes } from './routes/app.ts';
import { checkRoutes } from './routes/checks.ts';
import { conversationRoutes } from './routes/conversation.ts';
import { pullRoutes } from './routes/pulls.ts';
import { reviewRoutes } from './routes/reviews.ts';

const routes: readonly Route[] = [...appRoutes, ...pullRoutes, ...reviewRoutes, ...conversationRoutes, ...checkRoutes];

const patterns = routes.map((route) => ({
  route,
  names: [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name),
  pattern: new RegExp(`^${route.path.replace(/\{\w+\}/g, '([^/]+)')}$`),
}));

/** The route of a request, with the parameters of its path. */
export function routeOf(
  method: string,
  path: string,
): { readonly route: Route; readonly params: Record<string, string> } | undefined {
  for (const { route, names, pattern } of patterns) {
    const match = route.method === method ? pattern.exec(path) : null;
    if (!match) continue;
    return {
      route,
      params: Object.fromEntries(names.map((name, at) => [name, decodeURIComponent(match[at + 1] ?? '')])),
    };
  }
  return;
}
