import * as v from 'valibot';

export const AppAnswer = v.object({
  id: v.number(),
  slug: v.optional(v.string(), ''),
  name: v.string(),
  html_url: v.string(),
  permissions: v.record(v.string(), v.string()),
  events: v.array(v.string()),
});

/** The App as its owner registered it. */
export interface AppFacts {
  readonly id: number;
  readonly slug: string;
  readonly name: string;
  readonly url: string;
  readonly permissions: Readonly<Record<string, string>>;
  readonly events: readonly string[];
}

export function appFactsOf({ html_url: url, ...facts }: v.InferOutput<typeof AppAnswer>): AppFacts {
  return { ...facts, url };
}

export const HookAnswer = v.object({
  url: v.nullish(v.string()),
  content_type: v.nullish(v.string()),
  insecure_ssl: v.nullish(v.union([v.string(), v.number()])),
  secret: v.nullish(v.string()),
});

/** Where GitHub delivers to. */
export interface HookFacts {
  readonly url: string;
  readonly isJson: boolean;
  readonly verifiesTls: boolean;
  readonly hasSecret: boolean;
}

export function hookFactsOf({ url, content_type, insecure_ssl, secret }: v.InferOutput<typeof HookAnswer>): HookFacts {
  return {
    url: url ?? '',
    isJson: content_type === 'json',
    verifiesTls: String(insecure_ssl ?? '0') === '0',
    hasSecret: Boolean(secret),
  };
}

/**
 * Difference of our clock from GitHub's, in milliseconds: positive when ours is fast. Exact to a second; null when the response has no
 * valid `Date`.
 */
export function clockSkewMs(date: unknown): number | null {
  const theirs = Date.parse(String(date));
  return Number.isNaN(theirs) ? null : Math.trunc((Date.now() - theirs) / 1_000) * 1_000;
}
