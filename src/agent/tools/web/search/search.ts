import type { IncomingMessage } from 'node:http';
import * as v from 'valibot';
import { redact } from '../../../../lib/index.ts';
import type { ToolContext, ToolResult } from '../../../tool.ts';
import { revealsSecret } from '../../secrets.ts';
import { cutLine, done, failed, refused } from '../../text.ts';
import { withDeadline } from '../deadline.ts';
import { WebError } from '../errors.ts';
import { readBody, send } from '../http.ts';
import { type SearchHit, type SearchProvider, searchProviders } from './providers.ts';
import type { WebSearchSettings } from './web-search.ts';

const snippetChars = 500;

export interface SearchArguments {
  readonly query: string;
  readonly maxResults: number;
}

/** Queries the configured provider; its problems are text of the result too. */
export async function search(
  args: SearchArguments,
  settings: WebSearchSettings,
  { signal }: ToolContext,
): Promise<ToolResult> {
  if (settings.provider === 'none') return failed(notConfigured);
  if (revealsSecret(args.query, settings.secrets)) return refused('the query holds a secret of the configuration.');
  const provider = searchProviders[settings.provider];
  const missing = whatIsMissing(provider, settings);
  if (missing !== undefined) return failed(missing);
  try {
    const hits = await withDeadline(signal, settings.timeoutMs, (until) => ask(provider, args, settings, until));
    return done(listingOf(args, provider, hits));
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof WebError)) throw error;
    return failed(redact(`WebSearch: ${provider.title}: ${error.message}.`, [settings.apiKey]));
  }
}

const notConfigured =
  'WebSearch: no search provider is configured, so nothing was searched. The user can set Tools.Web.SearchProvider to "searxng" (with Tools.Web.SearchUrl), or to "brave", "exa" or "tavily" (with Tools.Web.SearchApiKey). Pages whose address is known can be read with WebFetch.';

/** Names the missing setting of the configuration. */
function whatIsMissing(provider: SearchProvider, { url, apiKey }: WebSearchSettings): string | undefined {
  if (provider.needsKey && apiKey === '') {
    return `WebSearch: ${provider.title} needs a key: the user has to set Tools.Web.SearchApiKey.`;
  }
  if (url === '' && provider.address === undefined) {
    return `WebSearch: ${provider.title} needs the address of an instance: the user has to set Tools.Web.SearchUrl.`;
  }
  if (url !== '' && !/^https?:$/.test(URL.parse(url)?.protocol ?? '')) {
    return 'WebSearch: the setting Tools.Web.SearchUrl is not an http or https URL: the user has to correct it.';
  }
  return undefined;
}

/** The user's own choice of address: it may be a private one. A redirect is not followed, it would take the key along. */
async function ask(
  provider: SearchProvider,
  { query, maxResults }: SearchArguments,
  { url, apiKey, maxBytes }: WebSearchSettings,
  signal: AbortSignal,
): Promise<readonly SearchHit[]> {
  const address = endpoint(url || (provider.address ?? ''), provider.path);
  const response = await send(provider.request(address, { query, maxResults, apiKey }), signal);
  const { bytes, isCut } = await readBody(response, maxBytes, signal);
  checkStatus(response, provider);
  const answer = v.safeParse(provider.answer, isCut ? undefined : parseJson(bytes.toString()));
  if (!answer.success)
    throw new WebError('the answer differs from the documentation of the provider; it cannot be used');
  return answer.output.slice(0, maxResults);
}

/** `address` with the path of the API, unless it has that already. */
function endpoint(address: string, path: string): URL {
  const url = new URL(address);
  const base = url.pathname.replace(/(?<!\/)\/+$/, '');
  url.pathname = base.endsWith(path) ? base : base + path;
  return url;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The schema then rejects it as an answer.
    return undefined;
  }
}

/** Advice to the user by status. */
const advice: Readonly<Record<number, string>> = {
  401: 'the key is not accepted (401); the user has to correct Tools.Web.SearchApiKey',
  402: 'the account has no credit left (402)',
  403: 'it refuses (403): the key may lack a right, or, with SearXNG, its settings may lack "json" in search.formats',
  404: 'it has no search at that address (404); the user has to correct Tools.Web.SearchUrl',
};

/** @throws WebError when the answer is not 200 */
function checkStatus({ statusCode = 0, headers }: IncomingMessage, { needsKey }: SearchProvider): void {
  if (statusCode === 200) return;
  if (statusCode === 429) throw new WebError(`too many searches (429)${retryAdvice(headers['retry-after'])}`);
  if (statusCode === 422 && needsKey) throw new WebError('it does not accept the query or the key (422)');
  throw new WebError(advice[statusCode] ?? `it answered with status ${statusCode}`);
}

const retryAdvice = (after: string | undefined): string =>
  /^\d{1,6}$/.test(after ?? '') ? `; try again in ${after} s` : '; try again later';

function listingOf({ query }: SearchArguments, { title }: SearchProvider, hits: readonly SearchHit[]): string {
  if (hits.length === 0) return `${title} found nothing for ${JSON.stringify(query)}.`;
  return hits
    .map(({ title, url, snippet }, at) => {
      const lines = [`${at + 1}. ${plain(title) || url}`, `   ${url}`, `   ${cutLine(plain(snippet), snippetChars)}`];
      return lines.filter((line) => line.trim() !== '').join('\n');
    })
    .join('\n\n');
}

/** Returns the text on one line, without the HTML tags in which providers mark search terms. */
const plain = (text: string): string =>
  text
    .replace(/<\/?(strong|b|em|mark)>/gi, '')
    .replace(/\s+/g, ' ')
    .trim();
