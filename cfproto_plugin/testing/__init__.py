"""A conformance kit: whether an adapter, a prototype provider or a categorical distance keeps its promises.

The whole test file of a plugin::

    import pytest
    from cfproto_plugin.testing import checks

    @pytest.mark.parametrize("check", checks(model, rows), ids=str)
    def test_the_plugin_conforms(check):
        check()

or, all at once, `check_adapter(MyAdapter(model), rows)`, `check_spec(plugin, model, rows)`,
`check_provider(provider, z, labels)`, `check_distance(distance, codes, n_categories, context, labels)`. The same from
the command line: `cfproto check package.module:function`. Every check is a function that raises AssertionError with
what is wrong.
"""

from cfproto_plugin.testing.adapters import (
    adapter_checks,
    check_adapter,
    classes_are_distinct_and_as_many_as_columns,
    float32_and_float64_agree,
    input_is_not_modified,
    output_does_not_depend_on_the_batch,
    output_is_deterministic,
    output_is_finite_with_one_item_per_row,
    pullback_agrees_with_random_direction_differences,
    rows_are_probabilities_of_at_least_two_classes,
)
from cfproto_plugin.testing.distances import (
    a_category_is_at_no_distance_from_itself,
    a_category_without_rows_works,
    a_column_with_one_category_works,
    a_table_without_numbers_works,
    check_distance,
    distance_checks,
    distances_are_deterministic,
    distances_are_finite_and_not_negative,
    distances_are_symmetric,
    the_table_is_not_modified,
    there_is_one_matrix_per_column,
)
from cfproto_plugin.testing.kit import Check
from cfproto_plugin.testing.listing import checks, examine
from cfproto_plugin.testing.loading import loading_imports_no_framework
from cfproto_plugin.testing.optional import (
    a_batch_of_max_rows_is_predicted,
    a_frame_and_the_array_of_its_numbers_agree,
    columns_of_a_frame_may_come_in_any_order,
    feature_names_are_distinct_and_one_for_each_column,
    labels_are_columns_of_predict,
    labels_do_not_depend_on_the_batch,
    largest_score_is_the_label,
    optional_members_are_of_the_right_kind,
    quick_gives_what_predict_gives,
    trees_give_what_predict_gives,
)
from cfproto_plugin.testing.providers import (
    check_provider,
    classes_are_allowed_ones,
    every_class_with_points_has_a_prototype,
    fit_returns_a_provider,
    nearest_comes_first,
    points_and_classes_have_the_promised_shapes,
    points_are_not_modified,
    prototypes_are_deterministic,
    prototypes_do_not_depend_on_the_batch,
    provider_checks,
    rows_without_a_prototype_have_class_minus_one,
)
from cfproto_plugin.testing.specs import (
    check_spec,
    spec_checks,
    the_factory_leaves_the_model_untouched,
    the_factory_makes_what_it_promises,
    the_spec_claims_its_own_model,
)
from cfproto_plugin.testing.thresholds import (
    output_is_constant_between_neighbouring_thresholds,
    thresholds_are_sorted_for_every_column,
)
from cfproto_plugin.testing.untouched import (
    model_parameters_are_untouched,
    model_training_mode_is_untouched,
    output_does_not_depend_on_the_training_mode,
)

__all__ = [
    "Check",
    "a_batch_of_max_rows_is_predicted",
    "a_category_is_at_no_distance_from_itself",
    "a_category_without_rows_works",
    "a_column_with_one_category_works",
    "a_frame_and_the_array_of_its_numbers_agree",
    "a_table_without_numbers_works",
    "adapter_checks",
    "check_adapter",
    "check_distance",
    "check_provider",
    "check_spec",
    "checks",
    "classes_are_allowed_ones",
    "classes_are_distinct_and_as_many_as_columns",
    "columns_of_a_frame_may_come_in_any_order",
    "distance_checks",
    "distances_are_deterministic",
    "distances_are_finite_and_not_negative",
    "distances_are_symmetric",
    "every_class_with_points_has_a_prototype",
    "examine",
    "feature_names_are_distinct_and_one_for_each_column",
    "fit_returns_a_provider",
    "float32_and_float64_agree",
    "input_is_not_modified",
    "labels_are_columns_of_predict",
    "labels_do_not_depend_on_the_batch",
    "largest_score_is_the_label",
    "loading_imports_no_framework",
    "model_parameters_are_untouched",
    "model_training_mode_is_untouched",
    "nearest_comes_first",
    "optional_members_are_of_the_right_kind",
    "output_does_not_depend_on_the_batch",
    "output_does_not_depend_on_the_training_mode",
    "output_is_constant_between_neighbouring_thresholds",
    "output_is_deterministic",
    "output_is_finite_with_one_item_per_row",
    "points_and_classes_have_the_promised_shapes",
    "points_are_not_modified",
    "prototypes_are_deterministic",
    "prototypes_do_not_depend_on_the_batch",
    "provider_checks",
    "pullback_agrees_with_random_direction_differences",
    "quick_gives_what_predict_gives",
    "rows_are_probabilities_of_at_least_two_classes",
    "rows_without_a_prototype_have_class_minus_one",
    "spec_checks",
    "the_factory_leaves_the_model_untouched",
    "the_factory_makes_what_it_promises",
    "the_spec_claims_its_own_model",
    "the_table_is_not_modified",
    "there_is_one_matrix_per_column",
    "thresholds_are_sorted_for_every_column",
    "trees_give_what_predict_gives",
]
