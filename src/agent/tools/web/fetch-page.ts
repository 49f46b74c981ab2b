import type { IncomingMessage } from 'node:http';
import type { ToolContext, ToolResult } from '../../tool.ts';
import { revealsSecret } from '../secrets.ts';
import { done, failed, formatBytes, refused } from '../text.ts';
import { type ContentKind, decodeText, kindOf, mediaType, sniff } from './content.ts';
import { withDeadline } from './deadline.ts';
import { systemResolver } from './destination.ts';
import { refusal, WebError } from './errors.ts';
import { follow } from './follow.ts';
import { isAllowedHost, parseWebUrl, webScope } from './hosts.ts';
import { readBody } from './http.ts';
import { readHtml } from './readable.ts';
import type { ExtractMode, WebFetchSettings } from './web-fetch.ts';

/** Most characters of an error's body. */
const errorChars = 1_000;
const headers = { accept: 'text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,*/*;q=0.5' };

export interface FetchArguments {
  readonly url: string;
  readonly extractMode: ExtractMode;
  readonly maxChars: number;
}

/** Description of a page. */
interface Page {
  readonly url: URL;
  readonly response: IncomingMessage;
  readonly title: string;
  readonly text: string;
  readonly isCut: boolean;
}

/** Fetches a page; problems of the page are text of the result too. */
export async function fetchPage(
  args: FetchArguments,
  settings: WebFetchSettings,
  { signal, isApproved }: ToolContext,
): Promise<ToolResult> {
  try {
    const page = await withDeadline(signal, settings.timeoutMs, (until) => readPage(args, settings, isApproved, until));
    return resultOf(page, args.maxChars, settings);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof WebError)) throw error;
    return error.isRefusal ? refused(`${error.message}.`) : failed(`WebFetch: ${error.message}.`);
  }
}

async function readPage(
  args: FetchArguments,
  settings: WebFetchSettings,
  isApproved: ToolContext['isApproved'],
  signal: AbortSignal,
): Promise<Page> {
  const start = parseWebUrl(args.url);
  if (revealsSecret(start.href, settings.secrets)) throw refusal('the address holds a secret of the configuration');
  const rules = { allowedHosts: settings.allowedHosts, resolve: settings.resolve ?? systemResolver };
  const isApprovedHost = (url: URL) => isAllowedHost(url, settings.allowedHosts) || isApproved(webScope(url));
  const { url, response } = await follow(start, rules, { headers, isApproved: isApprovedHost }, signal);
  const contentType = response.headers['content-type'];
  const type = mediaType(contentType);
  if (type !== '' && !kindOf(type)) throw unreadable(response, type);
  const { bytes, isCut } = await readBody(response, settings.maxBytes, signal);
  const kind = type === '' ? sniff(bytes) : kindOf(type);
  if (!kind) throw unreadable(response, 'of no text type');
  const content = await readable(decodeText(bytes, contentType), kind, args.extractMode, url, signal);
  return { url, response, isCut, ...content };
}

function readable(
  source: string,
  kind: ContentKind,
  mode: ExtractMode,
  { href }: URL,
  signal: AbortSignal,
): Promise<Pick<Page, 'title' | 'text'>> | Pick<Page, 'title' | 'text'> {
  if (kind === 'text' || mode === 'raw') return { title: '', text: source };
  return readHtml(source, href, mode, signal);
}

function unreadable(response: IncomingMessage, type: string): WebError {
  response.destroy();
  const size = Number(response.headers['content-length'] ?? Number.NaN);
  const length = Number.isFinite(size) ? formatBytes(size) : 'of unknown size';
  return new WebError(
    `${response.statusCode} answer, but the content is ${type} (${length}), which cannot be shown as text`,
  );
}

/** Head, content, and a note about its missing part. */
function resultOf(page: Page, maxChars: number, settings: WebFetchSettings): ToolResult {
  const { url, response, title, text } = page;
  const status = `${response.statusCode} ${response.statusMessage ?? ''}`.trim();
  const head = [`URL: ${url.href}`, `Status: ${status}`, ...(title === '' ? [] : [`Title: ${title}`])].join('\n');
  const isError = (response.statusCode ?? 0) >= 400;
  const shown = cut(text, isError ? Math.min(errorChars, maxChars) : maxChars);
  const notices = [
    ...(page.isCut ? [`[Only the first ${formatBytes(settings.maxBytes)} of the page were read.]`] : []),
    ...(shown.length < text.length ? [missing(shown.length, text.length, maxChars, settings.maxChars)] : []),
  ];
  const whole = [head, shown === '' ? '(no content)' : shown, ...notices].join('\n\n');
  return isError ? { text: `Error: WebFetch: the server answered ${status}.\n${whole}`, isError: true } : done(whole);
}

function missing(shown: number, all: number, maxChars: number, limit: number): string {
  const advice =
    maxChars < limit
      ? `Ask with a larger maxChars (at most ${limit}) for more`
      : 'Fetch a more specific address for the rest';
  return `[Showing characters 1-${shown} of ${all}. ${advice}.]`;
}

/** Never ends in half of a surrogate pair. */
const cut = (text: string, max: number): string => text.slice(0, max).replace(/[\uD800-\uDBFF]$/, '');
