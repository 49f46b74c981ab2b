import { useSignal } from '@preact/signals';
import type { ReviewDraft } from '../../../../protocol/index.ts';
import type { Conflict, DraftActs } from './acts.ts';

interface SummaryProps {
  readonly draft: ReviewDraft;
  readonly isOpen: boolean;
  readonly acts: DraftActs;
}

/** Maximum length of a summary. */
export const maxSummary = 20_000;

/** Summary of the review. */
export function Summary({ draft, isOpen, acts }: SummaryProps) {
  /** Edited text, and the version that it is based on. */
  const typed = useSignal<{ readonly text: string; readonly version: number } | null>(null);
  const conflict = useSignal<Conflict | null>(null);
  const isBusy = useSignal(false);
  const begin = () => {
    conflict.value = null;
    typed.value = { text: draft.summary, version: draft.version };
  };
  const end = () => {
    typed.value = null;
  };
  const save = async () => {
    const { text, version } = typed.peek() ?? { text: draft.summary, version: draft.version };
    isBusy.value = true;
    const outcome = await acts.saveSummary({ draftId: draft.draftId, version }, text);
    isBusy.value = false;
    if (outcome === null) end();
    else if (outcome) conflict.value = outcome;
  };
  if (typed.value === null || !isOpen) {
    return (
      <section class="summary" aria-label="Summary">
        <p class="words">{draft.summary === '' ? <span class="quiet">No summary.</span> : draft.summary}</p>
        {isOpen && (
          <button type="button" class="plain" onClick={begin}>
            Edit summary
          </button>
        )}
      </section>
    );
  }
  return (
    <form
      class="summary edit"
      aria-label="Edit the summary"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      {conflict.value && (
        <div class="warn" role="alert">
          <p>{conflict.value.message} It says now:</p>
          <p class="words theirs">{draft.summary}</p>
        </div>
      )}
      <label>
        Summary
        <textarea
          rows={6}
          maxLength={maxSummary}
          value={typed.value.text}
          onInput={(event) => {
            typed.value = { text: event.currentTarget.value, version: typed.peek()?.version ?? draft.version };
          }}
        />
      </label>
      <footer>
        <button type="button" onClick={end}>
          {conflict.value ? 'Keep theirs' : 'Stop editing'}
        </button>
        <button
          type="submit"
          class="main"
          disabled={isBusy.value}
          onClick={() => {
            // A user who has read the present text may replace it.
            if (conflict.peek() && typed.peek())
              typed.value = { text: typed.peek()?.text ?? '', version: draft.version };
          }}
        >
          {conflict.value ? 'Save mine' : 'Save'}
        </button>
      </footer>
    </form>
  );
}
