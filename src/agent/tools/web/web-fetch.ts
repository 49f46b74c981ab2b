import * as v from 'valibot';
import type { ApprovalNeed, Tool } from '../../tool.ts';
import { defineTool } from '../define.ts';
import { revealsSecret } from '../secrets.ts';
import type { Resolver } from './destination.ts';
import { WebError } from './errors.ts';
import { isAllowedHost, needOf, parseWebUrl } from './hosts.ts';

/** Settings of WebFetch: `Tools.Web`, and a resolver of names. */
export interface WebFetchSettings {
  /** Most bytes of a body, both as sent and decompressed. */
  readonly maxBytes: number;
  readonly maxChars: number;
  /** Time limit of everything: names, redirects, body, conversion. */
  readonly timeoutMs: number;
  readonly allowedHosts: readonly string[];
  /** Values that must not go out in an address. */
  readonly secrets: readonly string[];
  readonly resolve?: Resolver;
}

const minChars = 500;
const modes = ['markdown', 'text', 'raw'] as const;
export type ExtractMode = (typeof modes)[number];

/** `WebFetch`: one GET of a public page. */
export function createWebFetch(settings: WebFetchSettings): Tool {
  const { maxChars } = settings;
  return defineTool({
    name: 'WebFetch',
    description: 'Fetches a page of the public internet, HTML as Markdown.',
    isReadOnly: true,
    parameters: v.object({
      url: v.pipe(v.string(), v.trim(), v.nonEmpty('an http or https URL')),
      extractMode: v.pipe(v.optional(v.picklist(modes, '"markdown", "text" or "raw"'), 'markdown')),
      maxChars: v.pipe(
        v.optional(v.pipe(v.number('a number'), v.minValue(1, 'at least 1')), maxChars),
        v.description(`${minChars} to ${maxChars}.`),
        v.transform((chars) => Math.min(Math.max(Math.floor(chars), minChars), maxChars)),
      ),
    }),
    approvalFor: async ({ url }) => approvalOf(url, settings),
    aliases: { url: ['uri', 'address', 'link'], extractMode: ['mode', 'format'] },
    // HTTP, TLS, decompression and address ranges are loaded when a page is first wanted, not when a server starts.
    run: async (args, context) => (await import('./fetch-page.ts')).fetchPage(args, settings, context),
  });
}

/** One approval per host, unless the user named it in `Tools.Web.AllowedHosts`. `run` refuses text that is not a web address. */
function approvalOf(text: string, { allowedHosts, secrets }: WebFetchSettings): ApprovalNeed | undefined {
  try {
    const url = parseWebUrl(text);
    if (revealsSecret(url.href, secrets)) return undefined;
    return isAllowedHost(url, allowedHosts) ? undefined : needOf(url);
  } catch (error) {
    if (error instanceof WebError) return undefined;
    throw error;
  }
}
