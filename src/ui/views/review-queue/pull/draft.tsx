import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { ReviewDraft, ReviewFinding, ReviewItem } from '../../../../protocol/index.ts';
import type { App } from '../../../app/app.ts';
import { useResource } from '../../../app/resource.ts';
import { Confirm } from '../../../parts/dialog.tsx';
import { Glyph } from '../../../parts/glyphs.tsx';
import { Banner } from '../../../parts/state-banner.tsx';
import { reviewApi } from '../../review/api.ts';
import { Outward, Pill } from '../../review/parts.tsx';
import { reasonWords } from '../../review/reason-words.ts';
import { byWeight, counted, draftLooks, isOpenDraft, shortSha, titleOf } from '../../review/words.ts';
import type { DraftActs } from './acts.ts';
import { Finding } from './finding.tsx';
import { maxSummary, Summary } from './summary.tsx';

interface DraftProps {
  readonly app: App;
  readonly item: ReviewItem;
  readonly draft: ReviewDraft;
  readonly acts: DraftActs;
}

/** Question to the user before a decision; `override` is the server's reason for a refused publication. */
type Asked = 'discard' | 'publish' | { readonly override: string } | undefined;

/** Result of a review, and the decision about it. */
export function Draft({ app, item, draft, acts }: DraftProps) {
  const isOpen = isOpenDraft(draft);
  const findings = [...draft.findings].sort(byWeight);
  const chosenId = app.router.route.value.query['finding'];
  const hunks = useResource((signal) => reviewApi(app.api).hunks(draft.draftId, signal), [draft.draftId]);
  const editingId = useSignal<string | undefined>(undefined);
  const asked = useSignal<Asked>(undefined);
  const close = () => {
    asked.value = undefined;
  };
  const publish = async (override: boolean, summary = draft.summary) => {
    close();
    const fault = summary === draft.summary ? null : await acts.saveSummary(draft, summary);
    // Never publishes a summary that another user has just changed.
    if (fault) app.toast({ text: fault.message, tone: 'danger' });
    if (fault !== null) return;
    const result = await acts.publish(draft, override);
    if (result.outcome === 'blocked') asked.value = { override: result.message };
  };
  const askToPublish = () => {
    asked.value = 'publish';
  };
  const askOnly = async (finding: ReviewFinding) => {
    if (await acts.only(findings, finding)) askToPublish();
  };
  const choose = (findingId: string | undefined) => app.router.set({ finding: findingId });
  useFindingKeys(app, {
    ...{ findings, chosenId, choose, acts, isOpen },
    edit: (findingId) => {
      editingId.value = findingId;
    },
    publish: askToPublish,
  });
  return (
    <section class="draft" aria-label="Draft of the review">
      <DraftHead draft={draft}>
        {isOpen && (
          <>
            <button
              type="button"
              onClick={() => {
                asked.value = 'discard';
              }}
            >
              Discard…
            </button>
            <button type="button" class="main" title="Write it to the pull request (p)" onClick={askToPublish}>
              {publishWords(findings)}
            </button>
          </>
        )}
      </DraftHead>
      <Notes draft={draft} item={item} />
      <Summary key={draft.draftId} draft={draft} isOpen={isOpen} acts={acts} />
      {findings.length === 0 && <p class="quiet">Nothing was found.</p>}
      <ol class="findings" aria-label="Findings">
        {findings.map((finding) => (
          <Finding
            key={finding.findingId}
            finding={finding}
            hunk={hunks.data.value?.[finding.findingId]}
            version={draft.version}
            isOpen={isOpen}
            isChosen={finding.findingId === chosenId}
            isEditing={finding.findingId === editingId.value}
            acts={acts}
            onChoose={() => choose(finding.findingId)}
            onEdit={(isEditing) => {
              editingId.value = isEditing ? finding.findingId : undefined;
            }}
            onOnly={findings.length > 1 ? () => void askOnly(finding) : undefined}
          />
        ))}
      </ol>
      <Question
        asked={asked.value}
        title={titleOf(item)}
        action={publishWords(findings)}
        left={findings.filter(({ status }) => status !== 'accepted').length}
        summary={draft.summary}
        onClose={close}
        onDiscard={() => {
          close();
          void acts.discard(draft);
        }}
        onPublish={(override, summary) => void publish(override, summary)}
      />
    </section>
  );
}

interface QuestionProps {
  readonly asked: Asked;
  /** Title of the pull request. */
  readonly title: string;
  /** Words of the button that publishes. */
  readonly action: string;
  /** Findings that are not published. */
  readonly left: number;
  readonly summary: string;
  readonly onClose: () => void;
  readonly onDiscard: () => void;
  readonly onPublish: (override: boolean, summary?: string) => void;
}

function Question({ asked, title, action, left, summary, onClose, onDiscard, onPublish }: QuestionProps) {
  const text = useRef<HTMLTextAreaElement>(null);
  return (
    <>
      {asked === 'discard' && (
        <Confirm title="Discard this draft?" action="Discard it" onClose={onClose} onConfirm={onDiscard}>
          <p>It is not published, and cannot be changed any more. A new review can be asked for.</p>
        </Confirm>
      )}
      {asked === 'publish' && (
        <Confirm
          title={`${action}?`}
          action={action}
          cancel="Not yet"
          onClose={onClose}
          onConfirm={() => onPublish(false, text.current?.value)}
        >
          <p>
            It is written to <b>{title}</b> where everybody with access reads it, and cannot be taken back here.
          </p>
          {left > 0 && (
            <label class="summary edit">
              The summary was written with {counted(left, 'finding')} that {left === 1 ? 'is' : 'are'} left out:
              <textarea ref={text} rows={6} maxLength={maxSummary} defaultValue={summary} />
            </label>
          )}
        </Confirm>
      )}
      {typeof asked === 'object' && (
        <Confirm
          title="This draft cannot be published unchanged"
          action="Publish all the same"
          onClose={onClose}
          onConfirm={() => onPublish(true)}
        >
          <p>{asked.override}</p>
        </Confirm>
      )}
    </>
  );
}

function publishWords(findings: readonly ReviewFinding[]): string {
  const accepted = findings.filter(({ status }) => status === 'accepted').length;
  return accepted === 0 ? 'Publish the summary' : `Publish ${counted(accepted, 'finding')}`;
}

function DraftHead({ draft, children }: { readonly draft: ReviewDraft; readonly children: preact.ComponentChildren }) {
  const { status, headSha, reviewedFiles, totalFiles, url } = draft;
  return (
    <header class="draft-head">
      <h2>Review</h2>
      <Pill look={draftLooks[status]} />
      <span class="quiet">
        at <span class="mono">{shortSha(headSha)}</span> · {reviewedFiles.toLocaleString()} of{' '}
        {counted(totalFiles, 'file')}
      </span>
      {url !== undefined && <Outward url={url}>On the pull request</Outward>}
      <span class="push">{children}</span>
    </header>
  );
}

/** Facts for the decision: the reason of a block, newer commits, warnings, and left-out findings and files. */
function Notes({ draft, item }: { readonly draft: ReviewDraft; readonly item: ReviewItem }) {
  const { blockedBy, warnings, dropped, skippedFiles, headSha } = draft;
  const isBehind = isOpenDraft(draft) && headSha !== item.headSha;
  return (
    <>
      {blockedBy && (
        <Banner tone="danger">
          <p title={blockedBy.code}>{blockedBy.message}</p>
        </Banner>
      )}
      {isBehind && (
        <Banner tone="warn">
          <p>
            There are newer commits: this is about <span class="mono">{shortSha(headSha)}</span>, the pull request is at{' '}
            <span class="mono">{shortSha(item.headSha)}</span>.
          </p>
        </Banner>
      )}
      {warnings.length > 0 && (
        <ul class="warnings" aria-label="Warnings">
          {warnings.map((warning) => (
            <li key={warning} class="warn">
              <Glyph name="warning" /> {warning}
            </li>
          ))}
        </ul>
      )}
      {dropped.length > 0 && (
        <details class="skipped-files">
          <summary>{counted(dropped.length, 'finding')} left out</summary>
          <ul>
            {dropped.map(({ title, path, line, severity, reason }) => (
              <li key={`${path} ${line ?? ''} ${title}`}>
                {severity}: {title}{' '}
                <span class="mono">
                  {path}
                  {line === undefined ? '' : `:${line}`}
                </span>{' '}
                <span class="quiet">{reasonWords(reason)}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
      {skippedFiles.length > 0 && (
        <details class="skipped-files">
          <summary>{counted(skippedFiles.length, 'file')} not reviewed</summary>
          <ul>
            {skippedFiles.map(({ path, reason }) => (
              <li key={path}>
                <span class="mono">{path}</span> <span class="quiet">{reasonWords(reason)}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

interface KeyReach {
  readonly findings: readonly ReviewFinding[];
  readonly chosenId: string | undefined;
  readonly choose: (findingId: string | undefined) => void;
  readonly acts: DraftActs;
  readonly isOpen: boolean;
  readonly edit: (findingId: string) => void;
  readonly publish: () => void;
}

function useFindingKeys(app: App, reach: KeyReach): void {
  const latest = useRef(reach);
  latest.current = reach;
  useLayoutEffect(() => {
    const group = 'Review';
    const chosen = () => latest.current.findings.find(({ findingId }) => findingId === latest.current.chosenId);
    const step = (by: number) => {
      const { findings, choose, chosenId } = latest.current;
      const at = findings.findIndex(({ findingId }) => findingId === chosenId);
      const next = findings[Math.min(findings.length - 1, Math.max(0, at + by))];
      if (!next) return;
      choose(next.findingId);
      document.getElementById(`finding-${next.findingId}`)?.scrollIntoView({ block: 'nearest' });
    };
    const isOpen = () => latest.current.isOpen;
    const onChosen = (act: (finding: ReviewFinding) => void) => ({
      isEnabled: () => isOpen() && chosen() !== undefined,
      run: () => {
        const finding = chosen();
        if (finding) act(finding);
      },
    });
    const decide = (status: ReviewFinding['status']) =>
      onChosen((finding) => void latest.current.acts.setStatus(finding, status));
    return app.commands.register([
      { id: 'review.next', title: 'Go to the next finding', group, keys: ['j'], run: () => step(1) },
      { id: 'review.previous', title: 'Go to the previous finding', group, keys: ['k'], run: () => step(-1) },
      { id: 'review.accept', title: 'Accept the finding', group, keys: ['a'], ...decide('accepted') },
      { id: 'review.skip', title: 'Skip the finding', group, keys: ['s'], ...decide('skipped') },
      {
        ...{ id: 'review.edit', title: 'Edit the finding', group, keys: ['e'] },
        ...onChosen(({ findingId }) => latest.current.edit(findingId)),
      },
      {
        ...{ id: 'review.publish', title: 'Publish the review', group, keys: ['p'], isEnabled: isOpen },
        run: () => latest.current.publish(),
      },
    ]);
  }, [app]);
}
