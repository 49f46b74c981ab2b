import type { ReviewTrigger } from '../../protocol/index.ts';
import { type BackendSettings, instanceOf, projectKey } from '../settings/index.ts';

type Permits = (settings: BackendSettings, repositoryKey: string) => boolean;

const automatic: Permits = ({ Automation, GitHub }, repositoryKey) => {
  const { AutoReviewPublishEnabled, AutoReviewPublishRepositories: names } = Automation;
  const instance = instanceOf(GitHub.Endpoint);
  const isListed = names.length === 0 || names.some((name) => projectKey(instance, name) === repositoryKey);
  return AutoReviewPublishEnabled && isListed;
};
/** A user who requests a review on the source expects the result there. */
const always: Permits = () => true;
/** A user who requests a review on the page reads the draft there and decides. */
const never: Permits = () => false;

const byTrigger: Readonly<Record<ReviewTrigger, Permits>> = {
  auto: automatic,
  mention: always,
  checkRerequest: always,
  manual: never,
};

/** Whether the draft of a run with this trigger is published without confirmation by a user. */
export const publishesAutomatically = (
  settings: BackendSettings,
  trigger: ReviewTrigger,
  repositoryKey: string,
): boolean => settings.GitHub.WritesEnabled && byTrigger[trigger](settings, repositoryKey);
