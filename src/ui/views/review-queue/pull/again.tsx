import { useSignal } from '@preact/signals';
import type { ReviewItem, ReviewScope } from '../../../../protocol/index.ts';
import type { App } from '../../../app/app.ts';
import { Dialog } from '../../../parts/dialog.tsx';
import type { ReviewApi } from '../../review/api.ts';
import { attempt } from '../../review/live.ts';

/** Most characters of a focus, equal to the limit of a mention. */
const maxFocus = 500;

interface AgainProps {
  readonly app: App;
  readonly api: ReviewApi;
  readonly item: ReviewItem;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Requests a review: of everything or of the new changes, with or without a focus. */
export function ReviewAgain({ app, api, item, onClose, onDone }: AgainProps) {
  const canBeIncremental = item.reviewedHeadSha !== undefined;
  const scope = useSignal<ReviewScope>('full');
  const focus = useSignal('');
  const submit = async () => {
    const text = focus.peek().trim();
    const wish = { scope: scope.peek(), ...(text !== '' && { focus: text }) };
    if (await attempt(app, api.dispatch(item.itemId, wish), 'The review is in the queue.')) onClose();
    onDone();
  };
  return (
    <Dialog title="Review again" onClose={onClose}>
      <form
        class="inside edit"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <fieldset class="choices">
          <legend>What</legend>
          {(['full', 'incremental'] as const).map((each) => (
            <label key={each}>
              <input
                type="radio"
                name="scope"
                checked={scope.value === each}
                disabled={each === 'incremental' && !canBeIncremental}
                onChange={() => {
                  scope.value = each;
                }}
              />
              {each === 'full' ? 'The whole change' : 'The new part since the last review'}
            </label>
          ))}
        </fieldset>
        <label>
          Look at (may be empty)
          <input
            value={focus.value}
            maxLength={maxFocus}
            placeholder="races in the cache"
            onInput={(event) => {
              focus.value = event.currentTarget.value;
            }}
          />
        </label>
        <footer>
          <button type="button" onClick={onClose}>
            Leave it
          </button>
          <button type="submit" class="main">
            Review
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
