/** What the forge has been told by the App. */
import type { ForgeComment, ForgeReview, ForgeReviewComment } from '../../review/forge/index.ts';
import type { Scene } from './scene.ts';

export const bot = 'oratorio-test[bot]';

/** Reviews of a pull request, without what GitHub wraps around single comments. */
export const reviewsOf = ({ repo }: Scene, number: number): readonly ForgeReview[] =>
  repo.reviews.filter(
    (each) => each.number === number && each.author === bot && each.state !== 'PENDING' && each.body !== '',
  );

/** Comments on its lines and files. */
export const commentsOf = ({ repo }: Scene, number: number): readonly ForgeReviewComment[] =>
  repo.reviewComments.filter((each) => each.number === number && each.author === bot);

/** Comments in its conversation. */
export const sayingsOf = ({ repo }: Scene, number: number): readonly ForgeComment[] =>
  repo.comments.filter((each) => each.number === number && each.author === bot);
