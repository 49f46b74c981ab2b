import type { Reply, RequestContext } from '../../http/index.ts';
import type { ReviewApiOptions } from './service.ts';

export type ApiHandler = (context: RequestContext) => Reply | Promise<Reply>;

/** What handlers are made from. */
export type Services = Pick<
  ReviewApiOptions,
  'store' | 'settings' | 'actions' | 'logger' | 'node' | 'version' | 'about'
>;
