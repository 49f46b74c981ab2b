import type { Method } from './types.ts';

/** Methods of the wire to those of the routes: HEAD is asked of the route of GET. */
export const methods: ReadonlyMap<string, Method> = new Map([
  ['GET', 'GET'],
  ['HEAD', 'GET'],
  ['POST', 'POST'],
  ['PUT', 'PUT'],
  ['PATCH', 'PATCH'],
  ['DELETE', 'DELETE'],
]);
