import { useSignal } from '@preact/signals';
import { messageOf } from '../../../lib/browser.ts';
import { Dialog } from '../../parts/dialog.tsx';
import type { AutomationActions } from './actions.ts';

interface NewJobProps {
  readonly actions: AutomationActions;
  readonly onClose: () => void;
}

/** Creates a job with a daily time or a cron expression, and explains before saving how its requests are answered. */
export function NewJob({ actions, onClose }: NewJobProps) {
  const fault = useSignal<string | null>(null);
  const isBusy = useSignal(false);
  const isCron = useSignal(false);
  const save = async (form: FormData) => {
    isBusy.value = true;
    fault.value = null;
    const text = (name: string) => String(form.get(name) ?? '').trim();
    try {
      await actions.add({
        prompt: text('prompt'),
        schedule: isCron.value
          ? { kind: 'cron', expression: text('expression') }
          : { kind: 'daily', time: text('time') },
        ...(form.has('yes') && { approvalPolicy: 'autoApprove' }),
      });
      onClose();
    } catch (error) {
      fault.value = messageOf(error);
    }
    isBusy.value = false;
  };
  return (
    <Dialog title="New job" onClose={onClose}>
      <form
        class="inside"
        onSubmit={(event) => {
          event.preventDefault();
          void save(new FormData(event.currentTarget));
        }}
      >
        <label>
          Prompt
          <textarea name="prompt" rows={3} required autofocus />
        </label>
        <label>
          Schedule
          <select
            value={isCron.value ? 'cron' : 'daily'}
            onChange={(event) => {
              isCron.value = event.currentTarget.value === 'cron';
            }}
          >
            <option value="daily">Every day</option>
            <option value="cron">Cron expression</option>
          </select>
        </label>
        {isCron.value ? (
          <label>
            Minute, hour, day, month, weekday
            <input name="expression" placeholder="0 9 * * MON-FRI" spellcheck={false} required />
          </label>
        ) : (
          <label>
            Time
            <input name="time" type="time" value="07:30" required />
          </label>
        )}
        <label class="choice">
          <input name="yes" type="checkbox" />
          Approve every request of this job
        </label>
        <p class="quiet">Otherwise requests for approval are declined, because no user is present.</p>
        {fault.value !== null && (
          <p class="danger" role="alert">
            {fault.value}
          </p>
        )}
        <footer>
          <button type="submit" class="main" disabled={isBusy.value}>
            Save
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
