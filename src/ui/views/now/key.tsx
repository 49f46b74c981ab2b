import { useSignal } from '@preact/signals';
import { messageOf, visible } from '../../../lib/browser.ts';
import type { ModelLogin, ModelProvider, ModelTest } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { useResource } from '../../app/resource.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Skeleton } from '../../parts/empty.tsx';
import { FaultBanner } from '../../parts/state-banner.tsx';
import { restartIfUp } from './restart.ts';

interface KeyProps {
  readonly app: App;
  /** Workspace to restart after the change. */
  readonly path: string;
  readonly onClose: () => void;
}

/** Asks the questions of `oratorio login`. Saves the key in the user's own settings, and never shows it again. */
export function KeyDialog({ app, path, onClose }: KeyProps) {
  const { data, error, reload } = useResource((signal) =>
    app.hub.get<readonly ModelProvider[]>('/v1/model/providers', signal),
  );
  return (
    <Dialog title="Change the key" onClose={onClose}>
      <FaultBanner error={error.value} at={null} retry={reload} />
      {data.value === null ? (
        error.value === null && <Skeleton rows={4} />
      ) : (
        <KeyForm app={app} path={path} onClose={onClose} providers={data.value} />
      )}
    </Dialog>
  );
}

function KeyForm({ app, path, onClose, providers }: KeyProps & { readonly providers: readonly ModelProvider[] }) {
  const chosen = useSignal(0);
  const failed = useSignal<string | null>(null);
  const isRefused = useSignal(false);
  const progress = useSignal<string | null>(null);
  const known = providers[chosen.value];
  const keyPage = known?.keyPage ?? null;
  const save = async (form: HTMLFormElement, isTested: boolean) => {
    const text = (field: string) => String(new FormData(form).get(field) ?? '').trim() || undefined;
    failed.value = null;
    isRefused.value = false;
    progress.value = isTested ? 'Sending a request…' : 'Saving…';
    try {
      const { file, test } = await app.hub.send<ModelLogin>('POST', '/v1/model/login', {
        provider: known?.name,
        isTested,
        ...{ apiKey: text('key'), endPoint: text('address'), model: text('model') },
      });
      if (file === null) {
        isRefused.value = true;
        failed.value = test === null ? null : testWords(test);
        return;
      }
      progress.value = 'Restarting…';
      await restartIfUp(app, path);
      app.toast({ text: `Saved to ${file}. ${test === null ? '' : testWords(test)}` });
      onClose();
    } catch (error) {
      failed.value = messageOf(error);
    } finally {
      progress.value = null;
    }
  };
  return (
    <form
      class="inside"
      onSubmit={(event) => {
        event.preventDefault();
        void save(event.currentTarget, event.submitter?.getAttribute('name') !== 'untested');
      }}
    >
      <label>
        Provider
        <select
          value={chosen.value}
          onChange={(event) => {
            chosen.value = event.currentTarget.selectedIndex;
          }}
        >
          {providers.map(({ name, label }, index) => (
            <option key={name} value={index}>
              {label}
            </option>
          ))}
        </select>
      </label>
      {known?.name === 'other' && (
        <label>
          Base URL
          <input name="address" type="url" placeholder="https://…/v1" required />
        </label>
      )}
      {keyPage !== null && (
        <label>
          <span>
            Key{' '}
            {keyPage !== '' && (
              <a href={keyPage} target="_blank" rel="noopener noreferrer">
                Get a key
              </a>
            )}
          </span>
          <input name="key" type="password" autocomplete="off" required={keyPage !== ''} />
        </label>
      )}
      <label>
        Model
        <input name="model" placeholder={known?.model ?? 'Current model'} autocomplete="off" spellcheck={false} />
      </label>
      <p class="quiet">
        The key is saved in your own settings, for all workspaces without a key of their own. It is not shown again.
      </p>
      {failed.value !== null && (
        <p class="danger" role="alert">
          {failed.value}
        </p>
      )}
      <footer>
        <span class="quiet grow" role="status">
          {progress.value}
        </span>
        {isRefused.value && (
          <button type="submit" name="untested" disabled={progress.value !== null}>
            Save anyway
          </button>
        )}
        <button type="submit" class="main" disabled={progress.value !== null}>
          Test and save
        </button>
      </footer>
    </form>
  );
}

const outcomeWords: Readonly<Record<ModelTest['outcome'], string>> = {
  answered: 'Answered',
  refused: 'Refused',
  unknownModel: 'Unknown model',
  unreachable: 'Unreachable',
};

/** `Answered in 412 ms`, `Refused: …`. */
export function testWords({ outcome, firstTokenMs, message, hint }: ModelTest): string {
  const result = firstTokenMs === null ? outcomeWords[outcome] : `${outcomeWords[outcome]} in ${firstTokenMs} ms`;
  return visible([message === '' ? result : `${result}: ${message}`, hint ?? ''].join(' ').trim(), {
    multiline: false,
  });
}
