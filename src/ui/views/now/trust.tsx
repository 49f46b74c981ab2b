import { useSignal } from '@preact/signals';
import { messageOf } from '../../../lib/browser.ts';
import type { TrustRequest } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { useResource } from '../../app/resource.ts';
import { ConsentText, unseenTitle, useSeen } from '../../parts/consent.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Skeleton } from '../../parts/empty.tsx';
import { FaultBanner } from '../../parts/state-banner.tsx';
import { restartIfUp } from './restart.ts';

interface TrustProps {
  readonly app: App;
  /** Canonical path of the workspace. */
  readonly path: string;
  readonly onClose: () => void;
}

/** Trust question: shows the sensitive settings of a workspace, which the user must read to the end. */
export function TrustDialog({ app, path, onClose }: TrustProps) {
  const search = new URLSearchParams({ path });
  const { data, error, reload } = useResource(
    (signal) => app.hub.get<TrustRequest>(`/v1/trust?${search}`, signal),
    [path],
  );
  const asked = data.value;
  return (
    <Dialog title="Trust this workspace?" onClose={onClose}>
      <div class="inside">
        <code class="place">{path}</code>
        <FaultBanner error={error.value} at={null} retry={reload} />
        {asked === null ? (
          error.value === null && <Skeleton rows={3} />
        ) : (
          <Question key={asked.revision} app={app} asked={asked} reload={reload} onClose={onClose} />
        )}
      </div>
    </Dialog>
  );
}

interface QuestionProps extends Pick<TrustProps, 'app' | 'onClose'> {
  readonly asked: TrustRequest;
  readonly reload: () => void;
}

function Question({ app, asked, reload, onClose }: QuestionProps) {
  const { workspacePath, lines, consequence, revision, trust } = asked;
  const { isSeen, see } = useSeen(lines.length === 0 ? [] : ['lines']);
  const isBusy = useSignal(false);
  if (trust === 'trusted') return <p role="status">This workspace is trusted.</p>;
  const agree = async () => {
    isBusy.value = true;
    try {
      await app.hub.send('POST', '/v1/trust', { workspacePath, revision });
      await restartIfUp(app, workspacePath);
      app.toast({ text: 'The workspace is trusted until these settings or files change.' });
      onClose();
    } catch (error) {
      app.toast({ text: messageOf(error), tone: 'danger', ms: 10_000 });
      reload();
    } finally {
      isBusy.value = false;
    }
  };
  return (
    <>
      {lines.length === 0 ? (
        <p>This workspace has no settings that need your trust.</p>
      ) : (
        <>
          <p>This workspace asks for:</p>
          <ConsentText text={lines.join('\n')} onSeen={() => see('lines')} />
          <p>{consequence}</p>
        </>
      )}
      <footer>
        <button type="button" onClick={onClose}>
          Keep it restricted
        </button>
        <button
          type="button"
          disabled={!isSeen || isBusy.value}
          title={isSeen ? undefined : unseenTitle}
          onClick={() => void agree()}
        >
          Trust and restart
        </button>
      </footer>
    </>
  );
}
