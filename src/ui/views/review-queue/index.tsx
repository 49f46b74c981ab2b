/** Reviews: every pull request with its state, or, with an id in the address, one pull request with its draft. */
import type { App } from '../../app/app.ts';
import { PullPage } from './pull/pull.tsx';
import { QueuePage } from './queue.tsx';
import './queue.css';

export default function QueueView({ app }: { readonly app: App }) {
  const [itemId] = app.router.route.value.path;
  if (itemId === undefined) return <QueuePage app={app} />;
  return <PullPage key={itemId} app={app} itemId={itemId} />;
}
