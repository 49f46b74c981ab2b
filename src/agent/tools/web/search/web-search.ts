import * as v from 'valibot';
import type { Tool } from '../../../tool.ts';
import { defineTool } from '../../define.ts';
import type { SearchProviderName } from './providers.ts';

/** Settings of WebSearch, from `Tools.Web`. */
export interface WebSearchSettings {
  readonly provider: SearchProviderName | 'none';
  /** Empty: the provider's own. */
  readonly url: string;
  readonly apiKey: string;
  readonly timeoutMs: number;
  readonly maxBytes: number;
  /** Values that must not go out in a query. */
  readonly secrets: readonly string[];
}

const mostResults = 10;
const usualResults = 5;
const queryWords = 'what to search for, at most 1000 characters';

/** `WebSearch`: queries the provider that the user configured, and no other. */
export function createWebSearch(settings: WebSearchSettings): Tool {
  const countWords = `a number from 1 to ${mostResults}`;
  return defineTool({
    name: 'WebSearch',
    description: 'Searches the web: titles, addresses and snippets.',
    isReadOnly: true,
    parameters: v.object({
      query: v.pipe(v.string(queryWords), v.trim(), v.nonEmpty(queryWords), v.maxLength(1000, queryWords)),
      maxResults: v.pipe(
        v.optional(v.pipe(v.number(countWords), v.minValue(1, countWords)), usualResults),
        v.description(`1 to ${mostResults}. Default: ${usualResults}.`),
        v.transform((wanted) => Math.min(Math.floor(wanted), mostResults)),
      ),
    }),
    aliases: { query: ['q', 'search', 'searchQuery'], maxResults: ['count', 'limit', 'numResults'] },
    // Loaded with the first search.
    run: async (args, context) => (await import('./search.ts')).search(args, settings, context),
  });
}
