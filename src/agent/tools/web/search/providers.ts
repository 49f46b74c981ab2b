import * as v from 'valibot';
import type { WebRequest } from '../http.ts';

/** Query to a provider. */
export interface SearchQuery {
  readonly query: string;
  readonly maxResults: number;
  readonly apiKey: string;
}

/** One thing found. */
export interface SearchHit {
  readonly title: string;
  readonly url: string;
  readonly snippet: string;
}

/** A search engine with an API. */
export interface SearchProvider {
  /** Name of the service for people. */
  readonly title: string;
  /** Default address, which `Tools.Web.SearchUrl` overrides; absent: the setting is required. */
  readonly address?: string;
  /** Path of the API, below the address. */
  readonly path: string;
  readonly needsKey: boolean;
  /** Completes a request to `url`. */
  readonly request: (url: URL, query: SearchQuery) => WebRequest;
  /** Schema of the answer; its output is the hits, best first. */
  readonly answer: v.GenericSchema<unknown, readonly SearchHit[]>;
}

const text = v.nullish(v.string(), '');

/** SearXNG, an instance of the user; its settings have to allow `json` in `search.formats`. */
const searxng: SearchProvider = {
  title: 'SearXNG',
  path: '/search',
  needsKey: false,
  request: (url, { query }) => ({ url: withParameters(url, { q: query, format: 'json' }) }),
  answer: v.pipe(
    v.object({ results: v.array(v.object({ title: text, url: v.string(), content: text })) }),
    v.transform(({ results }) => results.map(({ title, url, content }) => ({ title, url, snippet: content }))),
  ),
};

/** Brave Search API, web search. Leaves out `web` when it found nothing. */
const brave: SearchProvider = {
  title: 'Brave Search',
  address: 'https://api.search.brave.com',
  path: '/res/v1/web/search',
  needsKey: true,
  request: (url, { query, maxResults, apiKey }) => ({
    url: withParameters(url, { q: query, count: String(maxResults) }),
    headers: { accept: 'application/json', 'x-subscription-token': apiKey },
  }),
  answer: v.pipe(
    v.object({
      type: v.literal('search'),
      web: v.optional(v.object({ results: v.array(v.object({ title: text, url: v.string(), description: text })) })),
    }),
    v.transform(
      ({ web }) => web?.results.map(({ title, url, description }) => ({ title, url, snippet: description })) ?? [],
    ),
  ),
};

/** Exa, `/search` with the highlights of each page. */
const exa: SearchProvider = {
  title: 'Exa',
  address: 'https://api.exa.ai',
  path: '/search',
  needsKey: true,
  request: (url, { query, maxResults, apiKey }) => ({
    url,
    ...json({ query, numResults: maxResults, contents: { highlights: true } }, { 'x-api-key': apiKey }),
  }),
  answer: v.pipe(
    v.object({
      results: v.array(
        v.object({ title: text, url: v.string(), highlights: v.nullish(v.array(v.string()), []), summary: text, text }),
      ),
    }),
    v.transform(({ results }) =>
      results.map(({ title, url, highlights, summary, text }) => ({
        title,
        url,
        snippet: highlights.join(' … ') || summary || text,
      })),
    ),
  ),
};

/** Tavily, `/search`. */
const tavily: SearchProvider = {
  title: 'Tavily',
  address: 'https://api.tavily.com',
  path: '/search',
  needsKey: true,
  request: (url, { query, maxResults, apiKey }) => ({
    url,
    ...json({ query, max_results: maxResults }, { authorization: `Bearer ${apiKey}` }),
  }),
  answer: v.pipe(
    v.object({ results: v.array(v.object({ title: text, url: v.string(), content: text })) }),
    v.transform(({ results }) => results.map(({ title, url, content }) => ({ title, url, snippet: content }))),
  ),
};

/** Search providers by their names in `Tools.Web.SearchProvider`. */
export const searchProviders = { searxng, brave, exa, tavily } as const satisfies Record<string, SearchProvider>;
export type SearchProviderName = keyof typeof searchProviders;

function withParameters(url: URL, parameters: Readonly<Record<string, string>>): URL {
  const complete = new URL(url);
  for (const [name, value] of Object.entries(parameters)) complete.searchParams.set(name, value);
  return complete;
}

const json = (body: unknown, headers: Readonly<Record<string, string>>): Omit<WebRequest, 'url'> => ({
  method: 'POST',
  headers: { accept: 'application/json', 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
});
