/** Functions that load the parts which tools otherwise load on first use. */
export const toolParts: readonly (() => Promise<unknown>)[] = [
  () => import('diff'),
  () => import('./web/fetch-page.ts'),
  () => import('./web/search/search.ts'),
];
