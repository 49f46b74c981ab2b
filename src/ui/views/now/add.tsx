import { useSignal } from '@preact/signals';
import { messageOf } from '../../../lib/browser.ts';
import type { AppServerRecord, MadeWorkspace } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { AgentOptions } from './agents.tsx';

interface AddProps {
  readonly app: App;
  readonly onClose: () => void;
}

/** Turns a directory into a workspace, starts its agent server and opens its page. A restricted workspace is reviewed first. */
export function AddWorkspace({ app, onClose }: AddProps) {
  const fault = useSignal<string | null>(null);
  const progress = useSignal<string | null>(null);
  const begin = async (form: FormData) => {
    const agent = String(form.get('agent'));
    fault.value = null;
    progress.value = 'Creating the workspace…';
    try {
      const { workspacePath } = await app.hub.send<MadeWorkspace>('POST', '/v1/workspaces', {
        path: String(form.get('path')).trim(),
        ...(agent !== '' && { agent }),
      });
      progress.value = 'Starting its agent server…';
      const { page, trust, canonicalWorkspacePath } = await app.hub.send<AppServerRecord>(
        'POST',
        '/v1/appservers/ensure',
        { workspacePath },
      );
      if (trust === 'restricted') app.router.go({ view: 'now', query: { trust: canonicalWorkspacePath } });
      else if (page === null) onClose();
      else location.assign(`${page}#/chat`);
    } catch (error) {
      fault.value = messageOf(error);
    } finally {
      progress.value = null;
    }
  };
  return (
    <Dialog title="Add a workspace" onClose={onClose}>
      <form
        class="inside"
        onSubmit={(event) => {
          event.preventDefault();
          void begin(new FormData(event.currentTarget));
        }}
      >
        <label>
          Directory
          <input name="path" placeholder="~/project" autocomplete="off" spellcheck={false} required autofocus />
        </label>
        <label>
          Agent
          <select name="agent">
            <option value="">From its settings</option>
            <AgentOptions />
          </select>
        </label>
        <p class="quiet">
          A missing directory is created. A directory that already has files is restricted until you trust it.
        </p>
        {fault.value !== null && (
          <p class="danger" role="alert">
            {fault.value}
          </p>
        )}
        <footer>
          <span class="quiet grow" role="status">
            {progress.value}
          </span>
          <button type="submit" class="main" disabled={progress.value !== null}>
            Start
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
