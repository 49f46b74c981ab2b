import type { GitHubLimits } from '../limits.ts';
import type { RepositoryApi } from '../repository-api.ts';

/** The pending review that a write may submit: the last one saved. Outlives the process. */
export interface ReviewFence {
  /** Id on GitHub; null when none was saved. */
  readonly load: () => Promise<number | null>;
  readonly save: (reviewId: number) => Promise<void>;
}
/** Fence of a write that is not a review. */
export const noFence: ReviewFence = { load: async () => null, save: async () => {} };

/** Address of a write, and our identity there. */
export interface Target {
  readonly api: RepositoryApi;
  readonly app: { readonly id: number; readonly slug: string };
  readonly limits: GitHubLimits;
  /** Run of the write: part of the marker of a review. */
  readonly runId: string | null;
  readonly dedupeKey: string;
  /** An earlier attempt was sent, with an unknown result. */
  readonly wasTried: boolean;
  readonly fence: ReviewFence;
}

interface Written {
  readonly user?: { readonly login: string } | null | undefined;
  readonly body?: string | null | undefined;
}

/** True for a text by our App with our marker: any user can copy a marker alone. */
export const isOurs = ({ app }: Target, { user, body }: Written, marker: string): boolean =>
  isByUs(app.slug, user?.login) && (body ?? '').includes(marker);

/** REST calls an App `slug[bot]`, GraphQL `slug`. */
export const isByUs = (slug: string, login: string | undefined): boolean =>
  login?.toLowerCase().replace(/\[bot\]$/, '') === slug.toLowerCase();
