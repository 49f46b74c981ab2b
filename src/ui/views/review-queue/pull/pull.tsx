import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { ReviewDraft, ReviewRun } from '../../../../protocol/index.ts';
import type { App } from '../../../app/app.ts';
import { useResource } from '../../../app/resource.ts';
import { href } from '../../../app/router.ts';
import { Skeleton } from '../../../parts/empty.tsx';
import { FaultBanner } from '../../../parts/state-banner.tsx';
import { type ItemDetail, reviewApi } from '../../review/api.ts';
import { attempt, isAbout } from '../../review/live.ts';
import { Outward, Pill } from '../../review/parts.tsx';
import { isActive, isOpenDraft, lookOfRun, repositoryName, titleOf } from '../../review/words.ts';
import { draftActs } from './acts.ts';
import { ReviewAgain } from './again.tsx';
import { Draft } from './draft.tsx';
import { Facts, FailedWrites, Runs } from './facts.tsx';
import './pull.css';

const kinds = ['item.changed', 'run.changed', 'draft.changed', 'write.changed'] as const;

/** One pull request: its facts, its review runs, and the draft that needs a decision. */
export function PullPage({ app, itemId }: { readonly app: App; readonly itemId: string }) {
  const api = useMemo(() => reviewApi(app.api), [app]);
  const { data, error, at, reload } = useResource((signal) => api.item(itemId, signal), [itemId], {
    live: app.live,
    isConcerned: isAbout(kinds, itemId),
  });
  const detail = data.value;
  const title = detail && titleOf(detail.item);
  useEffect(() => {
    if (title) app.subject.value = title;
  }, [app, title]);
  return (
    <div class="view review-pull">
      {detail ? (
        <Known app={app} detail={detail} isStale={error.value !== null} reload={reload}>
          <FaultBanner error={error.value} at={at.value} retry={reload} />
        </Known>
      ) : (
        <>
          <div class="strip">
            <a href={href({ view: 'queue' })}>Queue</a>
            <h1>Pull request</h1>
          </div>
          <FaultBanner error={error.value} at={at.value} retry={reload} />
          {error.value === null && <Skeleton />}
        </>
      )}
    </div>
  );
}

interface KnownProps {
  readonly app: App;
  readonly detail: ItemDetail;
  readonly isStale: boolean;
  readonly reload: () => void;
  readonly children: preact.ComponentChildren;
}

function Known({ app, detail, isStale, reload, children }: KnownProps) {
  const api = useMemo(() => reviewApi(app.api), [app]);
  const acts = useMemo(() => draftActs(app, api, reload), [app, api, reload]);
  const isAsking = useSignal(false);
  const { item, runs, drafts } = detail;
  const active = runs.find(isActive);
  const draft = draftToShow(drafts, app.router.route.value.query['draft']);
  const sources = useResource((signal) => api.sources(signal), [item.repositoryKey]);
  const repository = sources.data.value?.find(({ repositoryKey }) => repositoryKey === item.repositoryKey);
  const writes = useResource(
    (signal) => api.writes({ runId: draft?.runId, status: 'failed', limit: 20 }, signal),
    [draft?.runId, draft?.status, draft?.version],
  );
  const cancel = () => {
    if (active) void attempt(app, api.cancel(active.runId), 'The review is ended.').then(reload);
  };
  const pause = () =>
    void attempt(
      app,
      api.pause(item.itemId, !item.isPaused),
      item.isPaused ? 'Automatic reviews resumed.' : 'Automatic reviews paused.',
    ).then(reload);
  const ask = () => {
    isAsking.value = true;
  };
  usePullKeys(app, { active, cancel, pause, ask });
  return (
    <>
      <div class="strip">
        <a href={href({ view: 'queue' })} title="Back to the queue (u)">
          Queue
        </a>
        <h1 class="cut">
          <Outward url={item.url}>{titleOf(item)}</Outward>
        </h1>
        <span class="quiet">
          {repositoryName(item.repositoryKey)}#{item.number}
        </span>
        <span class="push buttons">
          {active && (
            <>
              <Pill look={lookOfRun(active.state)} />
              <button type="button" title="End the review (x)" onClick={cancel}>
                Cancel
              </button>
            </>
          )}
          <button type="button" onClick={pause}>
            {item.isPaused ? 'Resume' : 'Pause'}
          </button>
          <button type="button" title="Ask for a review (r)" onClick={ask}>
            {runs.length === 0 ? 'Review…' : 'Review again…'}
          </button>
        </span>
      </div>
      {children}
      <div class={`pull ${isStale ? 'stale' : ''}`}>
        <div class="pull-main">
          {draft ? (
            <Draft key={draft.draftId} app={app} item={item} draft={draft} acts={acts} />
          ) : (
            <NoDraft active={active} last={runs[0]} onAsk={ask} />
          )}
        </div>
        <aside class="pull-facts" aria-label="About the pull request">
          <Facts item={item} repository={repository} now={app.now.value} />
          {draft && (
            <FailedWrites
              // Omits the writes of another run while those of this draft's run are being fetched.
              writes={(writes.data.value?.rows ?? []).filter(({ runId }) => runId === draft.runId)}
              acts={acts}
              now={app.now.value}
            />
          )}
          <Runs app={app} runs={runs} drafts={drafts} shownDraftId={draft?.draftId} repository={repository} />
        </aside>
      </div>
      {isAsking.value && (
        <ReviewAgain
          app={app}
          api={api}
          item={item}
          onDone={reload}
          onClose={() => {
            isAsking.value = false;
          }}
        />
      )}
    </>
  );
}

/** The one that the address names, else the one to decide about, else the last one. */
function draftToShow(drafts: readonly ReviewDraft[], wanted: string | undefined): ReviewDraft | undefined {
  return drafts.find(({ draftId }) => draftId === wanted) ?? drafts.find(isOpenDraft) ?? drafts[0];
}

interface NoDraftProps {
  readonly active: ReviewRun | undefined;
  readonly last: ReviewRun | undefined;
  readonly onAsk: () => void;
}

function NoDraft({ active, last, onAsk }: NoDraftProps) {
  if (active) {
    return (
      <section class="empty" aria-live="polite">
        <h2>{lookOfRun(active.state).word}</h2>
        <p>The draft appears here by itself when the agent has handed it in.</p>
      </section>
    );
  }
  const hasFailed = last?.state === 'failed';
  return (
    <section class="empty">
      <h2>{hasFailed ? 'The review has failed' : 'No review yet'}</h2>
      {hasFailed && <p class="danger">{last.error?.message}</p>}
      <button type="button" class="main" onClick={onAsk}>
        {hasFailed ? 'Try again…' : 'Review…'}
      </button>
    </section>
  );
}

interface PullReach {
  readonly active: ReviewRun | undefined;
  readonly cancel: () => void;
  readonly pause: () => void;
  readonly ask: () => void;
}

function usePullKeys(app: App, reach: PullReach): void {
  const latest = useRef(reach);
  latest.current = reach;
  useLayoutEffect(() => {
    const group = 'Pull request';
    return app.commands.register([
      { id: 'pull.again', title: 'Ask for a review', group, keys: ['r'], run: () => latest.current.ask() },
      {
        ...{ id: 'pull.cancel', title: 'Cancel the review', group, keys: ['x'] },
        isEnabled: () => latest.current.active !== undefined,
        run: () => latest.current.cancel(),
      },
      { id: 'pull.pause', title: 'Pause or resume automatic reviews', group, run: () => latest.current.pause() },
      {
        ...{ id: 'pull.back', title: 'Go back to the queue', group, keys: ['u'] },
        run: () => app.router.go({ view: 'queue' }),
      },
    ]);
  }, [app]);
}
