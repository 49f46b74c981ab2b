import type { ReviewTrigger } from '../../protocol/index.ts';
import { type BackendSettings, instanceOf, projectKey } from '../settings/index.ts';

type Permits = (settings: BackendSettings, repositoryKey: string) => boolean;

const automatic: Permits = ({ Automation, GitHub }, repositoryKey) => {
  const { AutoReviewPublishEnabled, AutoReviewPublishRepositories: names } = Automation;
  const instance = instanceOf(GitHub.Endpoint);
  const isListed = names.length === 0 || names.some((name) => projectKey(instance, name) === repositoryKey);
  return AutoReviewPublishEnabled && isListed;
};
/** Who asked on the forge waits there for the answer. */
const answers: Permits = () => true;
/** Who asked on the page reads the draft there, and decides. */
const waits: Permits = () => false;

const byTrigger: Readonly<Record<ReviewTrigger, Permits>> = {
  auto: automatic,
  mention: answers,
  checkRerequest: answers,
  manual: waits,
};

/** Whether the draft of such a run is written back without anybody looking at it first. */
export const publishesByItself = (settings: BackendSettings, trigger: ReviewTrigger, repositoryKey: string): boolean =>
  settings.GitHub.WritesEnabled && byTrigger[trigger](settings, repositoryKey);
